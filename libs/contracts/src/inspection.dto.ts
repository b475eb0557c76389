import type { RegisterWorkerReply } from './worker.dto';
import { JobRequest, type NumberedPageReply, type PageReply, ScanRequest } from './common.dto';
import { IsIn, IsOptional } from 'class-validator';
import type { LongtailGroup } from './longtail.dto';
import type { RoundStatus } from './round.dto';
import type { SegmentList } from './segment.dto';
import { LIMITS } from './limits';
import { IsCorrelationId, IsCounter, IsId, IsWithin, IsWorkerId } from './rules';
import type {
  AttemptId,
  Epoch,
  GroupId,
  Integer,
  JobId,
  LeaseId,
  RequestId,
  RoundId,
  ServerId,
  WorkerId,
} from './scalars';

/** `worker.list`: one page of the live worker epochs. */
export class ListWorkersRequest extends ScanRequest {}
/** One live worker epoch. */
export interface WorkerStatus extends Pick<RegisterWorkerReply, 'ttlMs'> {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Time since the registration or the last heartbeat, milliseconds; above `ttlMs` the epoch expires. */
  heartbeatAgeMs: Integer;
  /** Time since the registration, milliseconds. */
  ageMs: Integer;
  /** Leases of the worker. */
  leases: Integer;
  /** Requests of the worker: claimed, running or cutting. */
  attempts: Integer;
  /** `server.reconcile` has asked the worker for a `worker.sync`, which has not started. */
  syncAsked?: boolean;
}
export interface ListWorkersReply extends PageReply {
  /** The workers, longest silence first within the page. */
  workers: WorkerStatus[];
}

/**
 * `lb.leases`: one page of the leases of the current epoch of a server, of the live epoch of a worker, or of the pool.
 * Errors: SERVER_NOT_FOUND, WORKER_NOT_FOUND; VALIDATION_FAILED for `serverId` and `workerId` together.
 */
export class ListLeasesRequest extends ScanRequest {
  /** Only leases on the current epoch of this server. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** Only leases of the live epoch of this worker. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
}
/** `lb.lease`: one live lease. Errors: LEASE_NOT_FOUND. */
export class GetLeaseRequest {
  @IsCorrelationId() leaseId!: LeaseId;
}
/** One live lease. */
export interface LeaseStatus {
  leaseId: LeaseId;
  /** Request that the acquire named. */
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
  /** Time since the grant, milliseconds. */
  ageMs: Integer;
}
export interface ListLeasesReply extends PageReply {
  /** The leases, oldest first within the page. */
  leases: LeaseStatus[];
}

/** States of requests that have not ended. */
export const LISTED_STATES = ['pending', 'claimed', 'running', 'cutting', 'unfinished'] as const;

/**
 * `request.list`: one page of the requests of a round, a group or a worker that have not ended. Needs exactly one of
 * `job` and `workerId`. Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, GROUP_NOT_FOUND, WORKER_NOT_FOUND.
 */
export class ListRequestsRequest extends ScanRequest {
  /** The job of the round. */
  @IsOptional() @IsId() job?: JobId;
  /** The round, with `job`. Default: the round that is not closed, or the last round. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** The requests of this group, with `job`, in any round or in the long-tail queue. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The requests of the live epoch of this worker, of any job and round. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  /** Only requests in this state. */
  @IsOptional() @IsIn(LISTED_STATES) state?: RequestStatus['state'];
  /** Only attempts of at least this age, milliseconds. */
  @IsOptional() @IsCounter(0) minAgeMs?: Integer;
}
/** One request that has not ended. */
export interface RequestStatus {
  requestId: RequestId;
  /** State of the request (docs/architecture.md: States of a request). */
  state: (typeof LISTED_STATES)[number];
  attempt: AttemptId;
  /** Failures of the engine or of the request so far. */
  failures: Integer;
  /** Reported tokens of all attempts. The number of a stuck request does not grow. */
  tokenCount: Integer;
  /** Token budget of the request; absent if Redis has lost its group. */
  maxTokens?: Integer;
  /** The worker of the request. Without a worker, `workerEpoch` and `ageMs` are absent too. */
  workerId?: WorkerId;
  workerEpoch?: Epoch;
  /** Time since the claim, milliseconds. */
  ageMs?: Integer;
  /** The server of the request, after the report of the worker. */
  serverId?: ServerId;
  /** The target server of a move, until the request runs there. */
  boundServerId?: ServerId;
  /** Mean tokens of the attempt in a second, until its last report; absent before its first tokens are reported. */
  tokensPerSecond?: number;
  /** Time since tokens of the attempt were reported last, milliseconds; workers report them periodically. */
  tokensAgeMs?: Integer;
  /** The engine sends no tokens: the request waits in the engine or was preempted, or the engine hangs. */
  waiting?: true;
}
export interface ListRequestsReply extends PageReply {
  /** The requests of the page, unordered. */
  requests: RequestStatus[];
}

/**
 * `request.get`: one request in any state, with its segments. Errors: REQUEST_NOT_FOUND, also after the requests of a
 * closed round were deleted.
 */
export class GetRequestRequest {
  @IsCorrelationId() requestId!: RequestId;
}
/** One request with its history. */
export interface RequestDetails extends Omit<RequestStatus, 'state'>, SegmentList {
  /** State of the request (docs/architecture.md: States of a request). */
  state: RequestStatus['state'] | 'finished' | 'trained' | 'failed' | 'dropped';
  job: JobId;
  groupId: GroupId;
  /** The round of the group; absent in the long-tail queue. */
  roundId?: RoundId;
  /** Step in which the group was first submitted. */
  firstStep?: Integer;
  /** Number of cuts of the group. */
  cuts: Integer;
}

/**
 * `round.list`: rounds of a job, latest step first: all rounds that still have groups, and the last 16 other rounds.
 */
export class ListRoundsRequest extends JobRequest {
  /** Maximum rounds; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** One round of a list. */
export interface RoundSummary extends Pick<
  RoundStatus,
  'roundId' | 'step' | 'kind' | 'state' | 'neededGroups' | 'acceptedGroups' | 'openedAtMs' | 'completedAtMs'
> {}
export interface ListRoundsReply {
  /** The rounds, latest step first. */
  rounds: RoundSummary[];
}

export const GROUP_SETS = ['live', 'accepted', 'failed', 'lost'] as const;
/**
 * `group.list`: one page of the groups of a round. A closed round loses its groups. Errors: JOB_NOT_FOUND,
 * ROUND_NOT_FOUND.
 */
export class ListGroupsRequest extends JobRequest {
  /** The round. Default: the round that is not closed, or the last round. */
  @IsOptional() @IsId() roundId?: RoundId;
  /**
   * Set of the groups. `live`: groups that are not accepted yet, in the order of arrival. `accepted`: accepted groups.
   * `failed`: groups with a request that failed for good. `lost`: the last 16,384 groups that failed or were dropped
   * since the last round was completed, with the reason; kept as long as the round has groups.
   * @default 'live'
   */
  @IsOptional() @IsIn(GROUP_SETS) set?: (typeof GROUP_SETS)[number];
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /**
   * Maximum groups of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** One group of a round. */
export interface GroupStatus extends LongtailGroup {
  /** `live`, `accepted`, `leaving` (cut, not in the queue yet), or how the group ended. */
  state: string;
  /** Samples that are pending, claimed, running or cutting. */
  liveSamples: Integer;
  /** The group is finished and has no place in the round. */
  isHeld?: true;
  /**
   * Why the group ended, with the set `lost`: the reason of the failed attempt (e.g. `engine-rejected`), the reason of
   * the abort or drop, `timeout`, or `lost` (Redis has lost a part of the group).
   */
  reason?: string;
  /** Message of the failed attempt, at most 300 bytes; with the set `lost`. */
  message?: string;
  /** The sample that ended the group, if a single sample did so; with the set `lost`. */
  requestId?: RequestId;
  /** Reference of the prompt; with the set `lost`. */
  promptRef?: string;
  /** When the group ended, milliseconds since 1970; with the set `lost`. */
  atMs?: Integer;
}
export interface ListGroupsReply extends NumberedPageReply {
  /** The groups of the page. */
  groups: GroupStatus[];
}

/** `lb.sessions`: one page of the sessions. */
export class ListSessionsRequest extends ScanRequest {
  /** Only sessions that are bound to this server. */
  @IsOptional() @IsId() serverId?: ServerId;
}
/** One session. */
export interface SessionStatus {
  /** Id of the session. */
  sessionId: string;
  /** Server of the session; absent until the next lease. */
  serverId?: ServerId;
  /** Epoch of the server. */
  serverEpoch?: Epoch;
  /** Live leases of the session. */
  leases: Integer;
  /** Data-parallel rank of the session on this server. */
  dpRank?: Integer;
  /** Tokens of its context after its last call; only with `sessionAdmission`, as all fields below. */
  contextTokens?: Integer;
  /** Session that has started it as a subagent. */
  parentSessionId?: string;
  /** True while its context counts on no server; its next turn is admitted again. */
  paused?: boolean;
  /** True while it is paused and its next turn waits to be admitted. */
  waiting?: boolean;
}
export interface ListSessionsReply extends PageReply {
  /** The sessions of the page, unordered. */
  sessions: SessionStatus[];
}

/**
 * `pool.audit`: compares the counts of the pool with its leases and requests. An audit ends after 8 s with the results
 * so far. A call during an audit gets the result of that audit. `npm run audit` has no time limit, and also repairs.
 */
export class AuditPoolRequest {}
/** One fault of the counts. */
export interface AuditFinding {
  /** Name of the broken rule. */
  check: string;
  /** Place of the fault, and its values. */
  message: string;
}
/** Result of an audit. */
export interface AuditPoolReply {
  /** The audit has found no fault. */
  balanced: boolean;
  /** The first 128 findings. */
  findings: AuditFinding[];
  /** Number of all findings. */
  findingCount: Integer;
  /** Counted items, by name. */
  counts: Record<string, Integer>;
  /**
   * The first 128 items that the audit could not decide: jobs with requests that changed all the time, and items that
   * were not read and confirmed within 8 s.
   */
  unproven: string[];
}
