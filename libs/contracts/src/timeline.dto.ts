import { IsOptional } from 'class-validator';
import { JobRequest } from './common.dto';
import type { PoolEvent } from './events';
import type { LedgerSummary } from './ledger.dto';
import type { RoundStatus } from './round.dto';
import type { TailPolicyName } from './tail-policy.dto';
import { IsCorrelationId, IsCounter, IsId } from './rules';
import type { Integer, RequestId, RoundId } from './scalars';

/**
 * `round.timeline`: the events that explain the time of a round, oldest first: events of the round and of its requests
 * (`request.finished` and `attempt.ended` have the times of each attempt), and changes of weights meanwhile with the
 * pauses of engines for them. They are read from the stream of events, which keeps them for EVENTS_STREAM_MAX_AGE_MS
 * and within EVENTS_STREAM_MAX_BYTES. Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND; UNAVAILABLE without JetStream.
 */
export class RoundTimelineRequest extends JobRequest {
  /** A round of `round.list`. */
  @IsId() roundId!: RoundId;
  /** Only the events of this request: its history in the round. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** Cursor of the previous page, or `position` of the last page. */
  @IsOptional() @IsCounter(1) cursor?: Integer;
}
export interface RoundTimelineReply {
  /** The events of the page. */
  events: PoolEvent[];
  /** Events of the pool that are missing in the stream between the events of this page; the timeline may lack them. */
  missingEvents: Integer;
  /** Send this for the next page; absent on the last page. */
  cursor?: Integer;
  /** On the last page: the cursor of a later call that returns only newer events; absent if there is no event yet. */
  position?: Integer;
}

/**
 * `job.frontier`: speed and cost of the last steps of a job, and the speed and cost of other tail policies on the same
 * samples. Errors: JOB_NOT_FOUND.
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
  /** The policy. */
  policy: TailPolicyName;
  /** Launched / needed groups; for the policy of the job, the value of its last round. */
  overProvision: number;
  /** The policy that the job had. Under `auto`, each step is replayed with the choice for its round. */
  isOwn: boolean;
  /** Steps in which the policy trains the recorded samples. */
  steps: Integer;
}
export interface JobFrontierReply {
  /** The last steps that are trained, oldest first; at most 16. */
  steps: FrontierStep[];
  /**
   * The recorded samples under the policy of the job and others, within the bounds of the job that pin groups; empty if
   * there are fewer than two steps of them, or under `fixed-concurrency`, which needs a model of the servers. Seconds
   * are scaled so that the simulated steps of the policy of the job take as long as the recorded ones.
   */
  whatIf: FrontierWhatIf[];
  /** Groups that were replayed, all with the same number of samples. */
  recordedGroups: Integer;
  /** Groups of which not all samples are recorded; they are left out. */
  partialGroups: Integer;
}
