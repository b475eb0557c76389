import { JobRequest } from './common.dto';
import type { RequestStatus } from './inspection.dto';
import type { LengthRange } from './ledger.dto';
import type { OpenRound, OverviewAlarm, UnreadPart } from './overview.dto';
import type { RoundStatus } from './round.dto';
import { IsId } from './rules';
import type { Integer, JobId, RequestId, RoundId } from './scalars';

/**
 * `round.explain`: what an open round waits for now, what is wrong, what to do, and when the round ends at the latest.
 * All numbers are of one moment. A part that does not answer is in `unread`, or is a cause if it is a part of the
 * overview; its fields are absent. A round that has its groups waits for nothing. Errors: JOB_NOT_FOUND,
 * ROUND_NOT_FOUND.
 */
export class ExplainRoundRequest extends JobRequest {
  /** The round. */
  @IsId() roundId!: RoundId;
}

/** A part of the explanation beyond the overview: the round, its requests, or the change of weights. */
export type ExplainedPart = 'round' | 'requests' | 'weights';
/** A part that has not answered. */
export interface UnreadRoundPart extends Omit<UnreadPart, 'part'> {
  /** The part. */
  part: ExplainedPart;
}
/** A request for which an open round waits. */
export interface AwaitedRequest extends Omit<RequestStatus, 'attempt' | 'workerEpoch'> {
  /** What delays the request, as text; absent if it makes progress. */
  problem?: string;
}
/** Latest end of an open round. */
export interface RoundEnd {
  /**
   * Time by which the round has its groups, milliseconds since 1970, if running requests keep their speed; absent if
   * unknown.
   */
  byMs?: Integer;
  /** How the time follows from the slowest request, or why it is unknown, as one sentence. */
  reason: string;
  /** The request that decides. */
  requestId?: RequestId;
}
/** Running samples of one range of lengths, by their tokens so far. */
export interface RunningLengths extends Pick<LengthRange, 'fromTokens' | 'toTokens'> {
  /** Number of samples. */
  running: Integer;
}
export interface ExplainRoundReply
  extends
    Partial<
      Pick<RoundStatus, 'step' | 'kind' | 'state' | 'openedAtMs' | 'completedAtMs' | 'acceptedGroups' | 'neededGroups'>
    >,
    Partial<Pick<OpenRound, 'ageMs' | 'medianMs'>> {
  job: JobId;
  roundId: RoundId;
  /** When the numbers were read, milliseconds since 1970. */
  atMs: Integer;
  /** What the round waits for, as one sentence. */
  waitsFor: string;
  /** What is wrong and delays the round, the worst first; empty if nothing is wrong. */
  causes: OverviewAlarm[];
  /** Latest end; absent for a round that has its groups. */
  end?: RoundEnd;
  /** Number of requests that have not ended, in each state that a request has. */
  requestsByState?: Partial<Record<RequestStatus['state'], Integer>>;
  /** The requests for which the round waits: delayed ones first, then the oldest; at most 16. */
  requests?: AwaitedRequest[];
  /** Running samples by tokens so far, four ranges to each doubling; ranges without samples are left out. */
  runningLengths?: RunningLengths[];
  /** True if only the first 16,384 requests were read. */
  isPartial?: true;
  /** Requests that ready servers may run together. Places without a request cost time. */
  places?: Integer;
  /** Places that are taken. */
  usedPlaces?: Integer;
  /** Parts that have not answered. */
  unread: UnreadRoundPart[];
}
