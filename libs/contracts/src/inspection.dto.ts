import { type PageReply, ScanRequest } from './common.dto';
import { IsOptional } from 'class-validator';
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

/** `worker.list`: one page of the live worker epochs. */
export class ListWorkersRequest extends ScanRequest {}
/** One live worker epoch. */
export interface WorkerStatus {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Time since the registration or the last heartbeat; above ttlMs the epoch expires. */
  heartbeatAgeMs: Integer;
  /** Time without a heartbeat after which the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Time since the registration. */
  ageMs: Integer;
  /** Leases of the worker. */
  leases: Integer;
  /** Requests of the worker: claimed, running or cutting. */
  attempts: Integer;
  /** The worker was asked to prove its leases (`server.reconcile`) and has not begun. */
  syncAsked?: boolean;
}
export interface ListWorkersReply extends PageReply {
  /** The workers, longest silence first within the page. */
  workers: WorkerStatus[];
}

/**
 * `lb.leases`: one page of the leases of the current epoch of a server, of the live epoch of a worker, or of the pool.
 * Errors: SERVER_NOT_FOUND, WORKER_NOT_FOUND; VALIDATION_FAILED for both selectors at once.
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
  /** As in the acquire. */
  requestId: RequestId;
  /** Attempt of the acquire, if any. */
  attempt?: AttemptId;
  serverId: ServerId;
  serverEpoch: Epoch;
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Session of the acquire, if any. */
  sessionId?: string;
  /** Group of the acquire, if any. */
  groupId?: GroupId;
  /** Time since the grant. */
  ageMs: Integer;
}
export interface ListLeasesReply extends PageReply {
  /** The leases, oldest first within the page. */
  leases: LeaseStatus[];
}

/**
 * `request.list`: one page of the requests that have not ended, of a round of a job or of a worker: exactly one of
 * `job` and `workerId`. Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, WORKER_NOT_FOUND.
 */
export class ListRequestsRequest extends ScanRequest {
  /** The job whose round is listed. */
  @IsOptional() @IsId() job?: JobId;
  /** With `job`; default: the round that is not closed, or the last one. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** The requests of the live epoch of this worker, of any job and round. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  /** Only attempts of at least this age, milliseconds. */
  @IsOptional() @IsCounter(0) minAgeMs?: Integer;
}
/** One request that has not ended. */
export interface RequestStatus {
  requestId: RequestId;
  /** State of the request (docs/architecture.md: States of a request). */
  state: 'pending' | 'claimed' | 'running' | 'cutting' | 'unfinished';
  attempt: AttemptId;
  /** Failures of the engine or of the request so far. */
  failures: Integer;
  /** Reported tokens of all attempts. It does not grow if the request is stuck. */
  tokenCount: Integer;
  /** The worker of the request; these three fields are absent if no worker has it. */
  workerId?: WorkerId;
  workerEpoch?: Epoch;
  /** Time since the claim. */
  ageMs?: Integer;
  /** The server it runs on, once its worker has reported it. */
  serverId?: ServerId;
  /** The server it was moved to and does not run on yet. */
  boundServerId?: ServerId;
}
export interface ListRequestsReply extends PageReply {
  /** The requests of the page, unordered. */
  requests: RequestStatus[];
}
