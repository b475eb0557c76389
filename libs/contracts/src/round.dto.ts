import { type JobPosition, JobRequest, RoundRequest, StampedJobRequest, type StampedReply } from './common.dto';
import { Type } from 'class-transformer';
import { IsIn, IsObject, IsOptional, IsString, MaxLength, ValidateNested } from 'class-validator';
import { ABORT_SCOPES, type AbortScope } from './abort.dto';
import { type Prompt, SamplingParameters } from './generation';
import { LIMITS } from './limits';
import type { ReturnReason } from './request.dto';
import { MAX_REF_LENGTH } from './segment.dto';
import type { TailChoice } from './tail-choice.dto';
import { TailPolicy, type WasteReason } from './tail-policy.dto';
import { IsCorrelationId, IsCounter, IsEpoch, IsId, IsListOf, IsName, IsWithin } from './rules';
import type { Epoch, GroupId, Integer, RequestId, RoundId, Stamp } from './scalars';

export const ROUND_KINDS = ['short', 'long'] as const;
/** Kind of a round. `short`: mostly new prompts, over-provisioned. `long`: groups of the long-tail queue. */
export type RoundKind = (typeof ROUND_KINDS)[number];
export const ROUND_STATES = ['opening', 'open', 'completed', 'closed', 'cancelled'] as const;
/**
 * State of a round. `opening`: the round still takes groups from the queue. `open`: the round runs. `completed`: the
 * round has all its groups. `closed`: the groups are trained. `cancelled`: the round was cancelled.
 */
export type RoundState = (typeof ROUND_STATES)[number];

/** `round.next`: returns a plan of the next round, and changes no round. */
export class NextRoundRequest extends StampedJobRequest {
  /** Groups of one training step. */
  @IsWithin(1, LIMITS.groupsPerRound) groupsPerStep!: Integer;
  /** Groups of the data set that were never submitted. */
  @IsCounter(0) remainingGroups!: Integer;
  /** Groups that were never submitted, by domain ('' = no domain); required with `domainQuotas`. */
  @IsOptional() @IsObject() remainingByDomain?: Record<string, Integer>;
  /** Tail policy of the round. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /** Epoch of an earlier open or takeover. A previous trainer is refused (`FENCED`). */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
}
/** Plan of a round. */
export interface RoundPlan {
  /** Id of the plan. `round.open` refuses the plan if the state has changed since (`PLAN_STALE`). */
  planId: string;
  /** Training step of the round, from 1. */
  step: Integer;
  /** Kind of the round, or `done`: no groups are left to train. */
  kind: RoundKind | 'done';
  /** Groups that the step trains. */
  neededGroups: Integer;
  /** New groups to submit. */
  newGroups: Integer;
  /** Groups that `round.open` takes from the long-tail queue. */
  takeGroups: Integer;
  /** New groups to submit, by domain ('' = no domain); only with `domainQuotas`. */
  newByDomain?: Record<string, Integer>;
  /** Choice of an adaptive policy; absent for other policies. */
  choice?: TailChoice;
}
export interface NextRoundReply extends RoundPlan, StampedReply {}

/** `round.open`: opens a round and takes its groups from the long-tail queue; idempotent by planId. */
export class OpenRoundRequest extends StampedJobRequest {
  /** Id of the new round, chosen by the trainer; not used before in the job. */
  @IsId() roundId!: RoundId;
  /** Id of the plan of `round.next`. */
  @IsId() planId!: string;
  /** Step of the plan. */
  @IsCounter(1) step!: Integer;
  /** Kind of the plan. */
  @IsIn(ROUND_KINDS) kind!: RoundKind;
  /** Needed groups of the plan. */
  @IsWithin(1, LIMITS.groupsPerRound) neededGroups!: Integer;
  /** Groups taken from the long-tail queue, as in the plan. */
  @IsWithin(0, LIMITS.groupsPerRound) takeGroups!: Integer;
  /** New groups to submit; with `takeGroups` at least `neededGroups`. */
  @IsWithin(0, LIMITS.groupsPerRound) newGroups!: Integer;
  /** Tail policy of the round, as for the plan. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /**
   * Weight version of the pool: the last committed version, otherwise the version that the servers report. Another
   * version is refused (`WEIGHT_VERSION_MISMATCH`). Default: the version of the pool.
   */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Epoch of an earlier open or takeover; absent for the first round of a job. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /**
   * Silence of the trainer after which claims stop, milliseconds.
   * @default 600000
   */
  @IsOptional() @IsCounter(1_000) orphanAfterMs?: Integer;
  /**
   * Scope of an abort or timeout of one request: the whole `group`, or only the `sample`. Without `minSamples` other
   * samples, the group ends.
   * @default 'group'
   */
  @IsOptional() @IsIn(ABORT_SCOPES) abortScope?: AbortScope;
  /**
   * Priority of the requests among waiting acquires of the pool, from 0 (lowest) to 9. Workers claim by the weights of
   * jobs, not by priority.
   * @default 5
   */
  @IsOptional() @IsWithin(0, 9) priority?: Integer;
  /**
   * Kind of the workers that may claim requests of the job, for example `agent`; workers send their kind with
   * `request.claim`. Counts until the next `round.open` of the job. Default: built-in workers, which send no kind.
   */
  @IsOptional() @IsName() workerKind?: string;
}
export interface OpenRoundReply
  extends StampedReply, Pick<RoundStatus, 'roundId' | 'trainerEpoch' | 'state' | 'takenGroups'> {}

/** `round.takeover`: starts a new trainer of the job and fences the previous one. */
export class TakeoverRoundRequest extends JobRequest {
  /** Id of the takeover, for idempotency: a repeat gets the same epoch. */
  @IsId() takeoverId!: string;
}
export interface TakeoverRoundReply extends JobPosition, StampedReply {
  /** The round that is not closed, if any. */
  round?: RoundStatus;
}

/** One prompt with its samples. */
export class GroupSubmission {
  /** Id of the group, unique in its job. */
  @IsId() groupId!: GroupId;
  /** Number of samples to train. */
  @IsWithin(1, LIMITS.samplesPerGroup) samples!: Integer;
  /**
   * Minimum number of samples to train if others were aborted, timed out or failed for good. The group waits for all
   * samples that can still finish, up to `samples`. Default: `samples`.
   */
  @IsOptional() @IsWithin(1, LIMITS.samplesPerGroup) minSamples?: Integer;
  /** The prompt inline, at most 32 kB; or `promptRef`. */
  @IsOptional() @IsObject() prompt?: Prompt;
  /** Reference of the prompt, stored by `payload.put`; or `prompt`. */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) promptRef?: string;
  /**
   * Token budget of each sample. The room in the context of the engine limits the budget. If all engines of the pool
   * report their context, a prompt of token ids without room is refused (`CONTEXT_TOO_LONG`). A limited response ends
   * with `length`.
   */
  @IsWithin(1, LIMITS.maxTokens) maxTokens!: Integer;
  /**
   * Maximum generation time of a sample over all attempts, milliseconds; default: no limit. Waits for a worker or a
   * server, and the time of thrown away tokens, do not count. A sample that takes longer ends like an aborted sample,
   * with the `abortScope` of the round.
   */
  @IsOptional() @IsWithin(1, LIMITS.timeoutMs) timeoutMs?: Integer;
  /** Sampling parameters of all samples, at most 4 kB of JSON. */
  @IsOptional() @ValidateNested() @Type(() => SamplingParameters) sampling?: SamplingParameters;
  /** Domain of the prompt, for `domainQuotas`, over-provision and long-tail statistics. */
  @IsOptional() @IsName() domain?: string;
  /**
   * Id of the prompt in the prompt memory. Use one id in all passes over the data and all jobs. Default: the contents
   * or `promptRef`.
   */
  @IsOptional() @IsCorrelationId() promptId?: string;
}

/** `round.submit`: submits one page of groups; a known group with the same contents is skipped. */
export class SubmitGroupsRequest extends RoundRequest {
  /** Groups to add to the round. */
  @IsListOf(() => GroupSubmission, LIMITS.groupsPerSubmit, 1) groups!: GroupSubmission[];
}
export interface SubmitGroupsReply extends StampedReply {
  /** Groups of the round so far, including groups from the queue. */
  roundGroups: Integer;
  /** Groups that were added. */
  added: Integer;
  /** Groups that were already in the round. */
  repeated: Integer;
}

/** `round.status`: state of a round; default: the round that is not closed, or the last one. */
export class RoundStatusRequest extends StampedJobRequest {
  @IsOptional() @IsId() roundId?: RoundId;
  /** Epoch of the trainer: the call counts for `orphanAfterMs`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
}
/** Why a request failed for good. */
export interface RequestFailure {
  /** Id of the request. */
  requestId: RequestId;
  /** Why the last attempt ended. */
  reason: ReturnReason;
  /** Text for people. */
  message?: string;
  /** When the request failed, milliseconds since 1970. */
  atMs: Integer;
}
/** Why a round is blocked, and how to unblock it. */
export interface BlockedReason {
  /**
   * `PAYLOAD_STORE_FULL`: the payload quota of the job is used up, or the payload store has no room. `UNAVAILABLE`: the
   * payload store cannot be written. `STORE_FULL`: Redis is near its maxmemory. `NO_SERVER_AVAILABLE`: the servers have
   * unknown weights, or other versions than the pool. `NO_WORKER_AVAILABLE`: no worker claims requests of the job.
   * `TRAINER_SILENT`: the trainer has not called for `orphanAfterMs`.
   */
  code:
    | 'PAYLOAD_STORE_FULL'
    | 'UNAVAILABLE'
    | 'STORE_FULL'
    | 'NO_SERVER_AVAILABLE'
    | 'NO_WORKER_AVAILABLE'
    | 'TRAINER_SILENT';
  /** Further reason; only with `NO_SERVER_AVAILABLE` and `NO_WORKER_AVAILABLE`. */
  reason?: 'weights-unknown' | 'weights-differ' | 'no-worker-of-kind';
  /** Advice, as text. */
  message: string;
  /**
   * Start of the block, milliseconds since 1970; only with `PAYLOAD_STORE_FULL` and `UNAVAILABLE`. With
   * `TRAINER_SILENT`: last call of the trainer.
   */
  sinceMs?: Integer;
  /** Kind of worker that the job requires; absent for built-in workers. Only with `no-worker-of-kind`. */
  workerKind?: string;
  /** Kinds of the workers that claim requests in the pool ('' = built-in). Only with `no-worker-of-kind`. */
  workerKinds?: string[];
}
/**
 * Why a round was completed: all groups are `accepted`, the `deadline` has passed, or the policy accepts fewer groups.
 */
export type CompletedReason = 'accepted' | 'deadline' | 'accepted-fewer';
/** State and progress of a round. */
export interface RoundStatus {
  roundId: RoundId;
  /** Training step, from 1. */
  step: Integer;
  /** Kind of the round, from its plan. */
  kind: RoundKind;
  /** State of the round. */
  state: RoundState;
  /** Tail policy of the round. */
  policy: TailPolicy;
  /** Weight version at the opening of the round. */
  weightVersion: Integer;
  /** Epoch of the trainer. The trainer sends the epoch with every call. */
  trainerEpoch: Epoch;
  /** Groups that the round accepts: the groups that the step trains, and `replacedGroups`. */
  neededGroups: Integer;
  /** New groups of the plan, and new groups that replace others. */
  newGroups: Integer;
  /** Groups taken from the long-tail queue. */
  takenGroups: Integer;
  /** Groups of the round so far: taken from the long-tail queue, and submitted. */
  roundGroups: Integer;
  /** Groups accepted so far. */
  acceptedGroups: Integer;
  /** Accepted groups that are not trained, because their rewards are equal. */
  excludedGroups: Integer;
  /** Excluded groups that the round replaces by other groups. */
  replacedGroups: Integer;
  /** Accepted groups without rewards, for which the open round waits; only with `equalRewards` `replace`. */
  unrewardedGroups?: Integer;
  /** Groups with a request that failed for good. */
  failedGroups: Integer;
  /** Groups that an abort or a timeout of a sample has dropped. */
  droppedGroups: Integer;
  /** Groups that may replace lost groups: max(0, needed - accepted - live). With `accept-fewer` no group is needed. */
  shortfallGroups: Integer;
  /** Samples finished in this round. */
  requestsDone: Integer;
  /** Started requests that were cut. */
  requestsCut: Integer;
  /** Groups that went to the long-tail queue. */
  groupsRequeued: Integer;
  /** Groups with a reserved place that are not accepted yet. The round waits for these groups. */
  pinnedGroups: Integer;
  /** Finished groups without a place in the round. */
  heldGroups: Integer;
  /** Requests that workers have; only for `fixed-concurrency`. */
  requestsInFlight?: Integer;
  /** Tokens thrown away. */
  wastedTokens: Integer;
  /** Tokens thrown away, by reason. */
  wastedByReason: Partial<Record<WasteReason, Integer>>;
  /** The choice of an adaptive policy for this round, and its reasons. */
  choice?: TailChoice;
  /** Attempts that returned unfinished without a command, by reason. */
  returnedAttempts: Partial<Record<ReturnReason, Integer>>;
  /** The last requests that failed for good, oldest first; at most 5. */
  lastFailures?: RequestFailure[];
  /** Kind of worker that may claim requests of the job; absent for built-in workers. */
  workerKind?: string;
  /** Why no request of the round is claimed or runs at present. */
  blockedReason?: BlockedReason;
  /** True if all cut requests are confirmed and all groups that were not accepted are in the long-tail queue. */
  settled: boolean;
  /** W3C trace context of the round, by which its trace is found; absent without traces. */
  traceparent?: string;
  /** Why the round was completed; absent before. */
  completedReason?: CompletedReason;
  /** When the round was opened, milliseconds since 1970. */
  openedAtMs: Integer;
  /** When the round was completed, milliseconds since 1970; absent before. */
  completedAtMs?: Integer;
  /** Stamp of the reply; absent in the reply of `round.takeover`, which has a separate stamp. */
  stamp?: Stamp;
}
