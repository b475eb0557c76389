import { ScanRequest } from './common.dto';
import type { PageReply } from './common.dto';
import type { LeaseStatus, RequestDetails } from './inspection.dto';
import type { ServerStatus } from './server.dto';
import { IsId } from './rules';
import type { Integer, ServerId } from './scalars';

/**
 * `server.calls`: one page of the calls that run on a server, oldest first within the page, with the requests of rounds
 * and their tokens. The default of `limit` is 32. Errors: SERVER_NOT_FOUND.
 */
export class ListServerCallsRequest extends ScanRequest {
  @IsId() serverId!: ServerId;
}
/** One call that runs on a server. */
export interface ServerCall
  extends
    Pick<LeaseStatus, 'leaseId' | 'requestId' | 'workerId' | 'sessionId' | 'ageMs'>,
    Partial<Pick<RequestDetails, 'job' | 'roundId' | 'state' | 'tokenCount' | 'failures'>> {}
export interface ListServerCallsReply extends PageReply, Pick<ServerStatus, 'serverId' | 'state' | 'inflight'> {
  /** Requests that run in the engine, as it reports; absent if the engine reports no load. */
  engineRunning?: Integer;
  /** Requests that wait in the engine. */
  engineWaiting?: Integer;
  /** The calls of the page. Only calls of requests of rounds have the fields from `job` on. */
  calls: ServerCall[];
}
