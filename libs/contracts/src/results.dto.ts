import type { LongtailGroup } from './longtail.dto';
import type { Claim, CompleteItem } from './request.dto';
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
   * Cursor of the previous page; absent: from the beginning. Error GENERATION_CHANGED: Redis has lost groups that were
   * read before.
   */
  @IsOptional() @IsResultsCursor() cursor?: string;
  /**
   * Maximum groups of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerResultsPage) limit?: Integer;
  /** Longest wait for the next group or the end of the round, milliseconds. */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
}
/** One finished sample. */
export interface SampleResult
  extends
    Pick<Claim, 'requestId' | 'sampleIndex'>,
    Pick<CompleteItem, 'finishReason' | 'engineFinishReason'>,
    SegmentList {
  /** Tokens of all segments. */
  tokenCount: Integer;
  /**
   * How much the tail policy prefers samples of about this length (up to a factor of sqrt(2)), in earlier steps: share
   * of the trained samples / share of the started samples. Weight the sample by the inverse. Absent if earlier steps
   * have trained no such sample.
   */
  acceptance?: number;
}
/** One accepted group. */
export interface GroupResult extends Pick<LongtailGroup, 'groupId' | 'cuts' | 'firstStep'> {
  /** Domain of the group, if any. */
  domain?: string;
  /** Reference of the prompt. */
  promptRef: string;
  /** The group is not trained, because its rewards are equal. */
  excluded?: true;
  /** Samples of the group. */
  samples: SampleResult[];
  /** The page ends within this group; its other samples are in the next page. */
  more?: boolean;
  /**
   * Digest of the samples and their segments; absent with `more`. If a later read has the same digest, the payloads are
   * still the same.
   */
  digest?: string;
}
export interface RoundResultsReply extends StampedReply {
  /** State of the round. */
  state: RoundState;
  /** The groups, in the order of acceptance. */
  groups: GroupResult[];
  /** Cursor of the next page. `round.close` needs the cursor of the last page. */
  cursor: string;
  /** The round is completed, and this is the last page. */
  complete: boolean;
  /** Cost of the policy in this round; only with the last page. */
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
   * Cursor of the last page of `round.results`, which proves the groups that were read. ROUND_MISMATCH if the round has
   * other groups.
   */
  @IsResultsCursor() cursor!: string;
  /** The groups that were read, so that the details of a ROUND_MISMATCH name missing, extra and different groups. */
  @IsOptional() @IsListOf(() => ReadGroup, LIMITS.groupsPerClose) groups?: ReadGroup[];
  /**
   * Rewards that were not reported before, as in `round.reward`. Rewards count even if the round cannot be closed yet.
   */
  @IsOptional() @IsListOf(() => GroupRewards, LIMITS.groupsPerReward) rewards?: GroupRewards[];
  /**
   * `remainingGroups` of `round.reward`, for `rewards`.
   * @default 0
   */
  @IsOptional() @IsCounter(0) remainingGroups?: Integer;
}
export interface CloseRoundReply extends StampedReply {
  roundId: RoundId;
  /** Steps trained, with this step. */
  stepsTrained: Integer;
  /** Groups of this round, without excluded groups. */
  trainedGroups: Integer;
  /** Trained samples of this round. */
  trainedRequests: Integer;
}
