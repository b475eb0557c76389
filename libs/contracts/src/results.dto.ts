import type { LongtailGroup } from './longtail.dto';
import type { Claim, CompleteRequest } from './request.dto';
import { RoundRequest, StampedJobRequest, type StampedReply } from './common.dto';
import { IsOptional, IsString, MaxLength } from 'class-validator';
import type { LedgerSummary } from './ledger.dto';
import { GroupRewards } from './reward.dto';
import { LIMITS } from './limits';
import type { RoundState } from './round.dto';
import type { SegmentList } from './segment.dto';
import { IsCounter, IsEpoch, IsId, IsListOf, IsResultsCursor, IsWithin } from './rules';
import type { Epoch, GroupId, Integer, RoundId } from './scalars';

/** `round.results`: returns accepted groups in the order of acceptance, also while the round is open. */
export class RoundResultsRequest extends StampedJobRequest {
  @IsId() roundId!: RoundId;
  /**
   * Cursor of the previous page; absent: from the beginning. GENERATION_CHANGED if Redis has lost groups that were read
   * before.
   */
  @IsOptional() @IsResultsCursor() cursor?: string;
  /**
   * Maximum groups of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerResultsPage) limit?: Integer;
  /** How long to wait for the next group or the end of the round, milliseconds. */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
}
/** One finished sample. */
export interface SampleResult
  extends
    Pick<Claim, 'requestId' | 'sampleIndex'>,
    Pick<CompleteRequest, 'finishReason' | 'engineFinishReason'>,
    SegmentList {
  /** Tokens of all segments. */
  tokenCount: Integer;
  /**
   * How much the tail policy prefers samples of about this length (at most a factor of sqrt(2) off): their share of the
   * samples that earlier steps have trained / their share of the samples that earlier steps have started. Proportional
   * to the probability that a sample is trained: weight the sample by the inverse. Absent if earlier steps have trained
   * none.
   */
  acceptance?: number;
}
/** One accepted group. */
export interface GroupResult extends Pick<LongtailGroup, 'groupId' | 'cuts' | 'firstStep'> {
  /** Domain it was submitted with, if any. */
  domain?: string;
  /** Reference of its prompt. */
  promptRef: string;
  /** The group is not trained, as its rewards are equal. */
  excluded?: true;
  /** Samples of the group. */
  samples: SampleResult[];
  /** The page ends within this group; its other samples are in the next page. */
  more?: boolean;
  /**
   * Digest of the samples and their segments; absent while `more`. If it is the same in a later read, the payloads need
   * not be fetched again.
   */
  digest?: string;
}
export interface RoundResultsReply extends StampedReply {
  /** State of the round. */
  state: RoundState;
  /** The groups, in the order of acceptance. */
  groups: GroupResult[];
  /** Cursor for the next page; the cursor of the last page is the proof for `round.close`. */
  cursor: string;
  /** The round is completed, and this is the last page. */
  complete: boolean;
  /** With the last page: cost of the policy in this round. */
  ledger?: LedgerSummary;
}
/** A group that was read completely. */
export class ReadGroup {
  @IsId() groupId!: GroupId;
  /** Digest of the group, from the results. */
  @IsString() @MaxLength(32) digest!: string;
}

/** `round.close`: marks the groups of the round as trained. */
export class CloseRoundRequest extends RoundRequest {
  /**
   * Cursor of the last page of `round.results`: proves which groups were read. ROUND_MISMATCH if they differ from the
   * round.
   */
  @IsResultsCursor() cursor!: string;
  /** The groups that were read: then the details of a ROUND_MISMATCH name missing, extra and different groups. */
  @IsOptional() @IsListOf(() => ReadGroup, LIMITS.groupsPerClose) groups?: ReadGroup[];
  /** Rewards that were not reported before, as in `round.reward`. They count even if the round cannot be closed yet. */
  @IsOptional() @IsListOf(() => GroupRewards, LIMITS.groupsPerReward) rewards?: GroupRewards[];
  /**
   * With `rewards`: as in `round.reward`.
   * @default 0
   */
  @IsOptional() @IsCounter(0) remainingGroups?: Integer;
}
export interface CloseRoundReply extends StampedReply {
  roundId: RoundId;
  /** Steps trained, including this one. */
  stepsTrained: Integer;
  /** Groups of this round, without the excluded ones. */
  trainedGroups: Integer;
  /** Their samples. */
  trainedRequests: Integer;
}
