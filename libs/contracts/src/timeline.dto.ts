import { IsOptional } from 'class-validator';
import { JobRequest } from './common.dto';
import type { PoolEvent } from './events';
import type { LedgerSummary } from './ledger.dto';
import type { RoundStatus } from './round.dto';
import type { TailPolicyName } from './tail-policy.dto';
import { IsCorrelationId, IsCounter, IsId, IsWithin } from './rules';
import type { Integer, RequestId, RoundId } from './scalars';

/**
 * `round.timeline`: events that explain the time of a round, oldest first: events of the round and its requests, and
 * changes of weights with pauses of engines during the round. `request.finished` and `attempt.ended` have the times of
 * each attempt. The stream of events keeps events for EVENTS_STREAM_MAX_AGE_MS and up to EVENTS_STREAM_MAX_BYTES.
 * Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND; UNAVAILABLE without JetStream.
 */
export class RoundTimelineRequest extends JobRequest {
  /** A round of `round.list`. */
  @IsId() roundId!: RoundId;
  /** Only events of this request. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** Cursor of the previous page, or `position` of the last page. */
  @IsOptional() @IsCounter(1) cursor?: Integer;
  /**
   * Maximum events of the page.
   * @default 512
   */
  @IsOptional() @IsWithin(1, 512) limit?: Integer;
}
export interface RoundTimelineReply {
  /** The events of the page. */
  events: PoolEvent[];
  /** Number of events of the pool, possibly of the round, that the stream has lost between the events of this page. */
  missingEvents: Integer;
  /** Cursor of the next page; absent on the last page. */
  cursor?: Integer;
  /** On the last page: cursor for a later call, which returns only newer events; absent if there is no event yet. */
  position?: Integer;
}

/**
 * `job.frontier`: speed and cost of the last steps of a job, and of other tail policies with the same samples. Errors:
 * JOB_NOT_FOUND.
 */
export class JobFrontierRequest extends JobRequest {}
/** Speed and cost. Shares are 0 to 1. */
export interface FrontierCost extends Pick<LedgerSummary, 'offPolicyShare' | 'lengthBias'> {
  /** Seconds of a step, from the opening of its round to its completion. */
  stepSeconds: number;
  /** Trained tokens in each second. */
  tokensPerSecond: number;
  /** Share of generated tokens that were thrown away. */
  wasteShare: number;
}
/** One step of the job, from its ledger. `lengthBias` covers all steps up to this one. */
export interface FrontierStep extends FrontierCost, Pick<RoundStatus, 'roundId' | 'step' | 'kind'> {}
/** One policy on the recorded samples: means over its steps. */
export interface FrontierWhatIf extends FrontierCost {
  /** Tail policy of this replay. */
  policy: TailPolicyName;
  /** Launched / needed groups; for the policy of the job: of the last round. */
  overProvision: number;
  /** True for the policy of the job. Under `auto`, each step is replayed with the choice for its round. */
  isOwn: boolean;
  /** Steps in which the policy trains the recorded samples. */
  steps: Integer;
}
export interface JobFrontierReply {
  /** The last trained steps, oldest first; at most 16. */
  steps: FrontierStep[];
  /**
   * The recorded samples under the policy of the job and under other policies, within the bounds of the job that pin
   * groups. Empty for fewer than two steps of samples, and under `fixed-concurrency`, which needs a model of the
   * servers. Seconds are scaled: with the policy of the job, simulated steps take as long as recorded steps.
   */
  whatIf: FrontierWhatIf[];
  /** Groups that were replayed, all with the same number of samples. */
  recordedGroups: Integer;
  /** Groups that were left out, because some of their samples are not recorded. */
  partialGroups: Integer;
}
