import { IsOptional } from 'class-validator';
import { IsScanCursor } from './cursors';
import {
  IsId,
  type GroupId,
  type JobId,
  type LeaseId,
  type RequestId,
  type RoundId,
  type ServerId,
  type WorkerId,
  type AttemptId,
  type Epoch,
  IsWorkerId,
} from './ids';
import { IsCounter, type Integer } from './integers';

/** Who holds what, for people who look for what is stuck. Reads only; ages are in milliseconds at the time of Redis. */
class ScanRequest {
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
}

/** `worker.list`: one page of the worker epochs that live. */
export class ListWorkersRequest extends ScanRequest {}
/** One live worker epoch. */
export interface WorkerStatus {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Since its registration or last heartbeat; above ttlMs the epoch is expired. */
  heartbeatAgeMs: Integer;
  /** Without a heartbeat for this long the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Since its registration. */
  ageMs: Integer;
  /** Leases it holds. */
  leases: Integer;
  /** Requests it has: claimed, running or cutting. */
  attempts: Integer;
  /** It was asked to prove its leases (`server.reconcile`) and has not begun. */
  syncAsked?: boolean;
}
export interface ListWorkersReply {
  /** The longest silent first, within the page. */
  workers: WorkerStatus[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}

/**
 * `lb.leases`: one page of the leases on the current epoch of a server, of the live epoch of a worker, or of the pool.
 * SERVER_NOT_FOUND, WORKER_NOT_FOUND; VALIDATION_FAILED for both selectors at once.
 */
export class ListLeasesRequest extends ScanRequest {
  /** Only leases on the current epoch of this server. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** Only leases of the live epoch of this worker. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
}
/** One live lease. */
export interface LeaseStatus {
  leaseId: LeaseId;
  /** Of the acquire. */
  requestId: RequestId;
  serverId: ServerId;
  serverEpoch: Epoch;
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Session of the acquire, if it named one. */
  sessionId?: string;
  /** Group of the acquire, if it named one. */
  groupId?: GroupId;
  /** Since the grant. */
  ageMs: Integer;
}
export interface ListLeasesReply {
  /** The oldest first, within the page. */
  leases: LeaseStatus[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}

/**
 * `request.list`: one page of the requests that have not ended: of a round of a job, or that a worker has. Exactly one
 * of `job` and `workerId`. JOB_NOT_FOUND, ROUND_NOT_FOUND, WORKER_NOT_FOUND.
 */
export class ListRequestsRequest {
  /** The job whose round is listed. */
  @IsOptional() @IsId() job?: JobId;
  /** With `job`; default: the round that is not closed, or the last one. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** What its live epoch has, whatever the job and round. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
  /** Only attempts of at least this age. */
  @IsOptional() @IsCounter(0) minAgeMs?: Integer;
}
/** One request that has not ended. */
export interface RequestStatus {
  requestId: RequestId;
  /** State of the request (architecture: A request's life). */
  state: 'pending' | 'claimed' | 'running' | 'cutting' | 'unfinished';
  attempt: AttemptId;
  /** Failures of its engine or of the request itself so far. */
  failures: Integer;
  /** Tokens of all attempts, as far as they were said. A request of which this does not grow makes none. */
  tokenCount: Integer;
  /** The worker that has it; these three are absent while nobody has. */
  workerId?: WorkerId;
  workerEpoch?: Epoch;
  /** Since it was claimed. */
  ageMs?: Integer;
  /** Where it runs, once its worker has said so. */
  serverId?: ServerId;
  /** Where it was moved to and has not begun. */
  boundServerId?: ServerId;
}
export interface ListRequestsReply {
  /** The page, in no particular order. */
  requests: RequestStatus[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}
