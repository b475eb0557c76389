import { RoundRequest, type StampedReply } from './common.dto';
import { IsIn, IsOptional, MaxLength } from 'class-validator';
import type { Integer, RoundId } from './scalars';

export const CANCEL_MODES = ['requeue', 'drop'] as const;
/** Treatment of the groups of a cancelled round. */
export type CancelMode = (typeof CANCEL_MODES)[number];

/**
 * `round.cancel`: cancels a round that is not closed. Its step is not counted, and another round may be opened with
 * another roundId. Workers get the same command as in a cut.
 */
export class CancelRoundRequest extends RoundRequest {
  /**
   * `requeue`: all its groups, also accepted ones, go to the long-tail queue with all tokens, under every policy.
   * `drop`: they are dropped, and their tokens count as waste.
   */
  @IsIn(CANCEL_MODES) mode!: CancelMode;
  /**
   * In the event `round.cancelled`, and in `group.dropped` of each dropped group.
   * @default 'round-cancelled'
   */
  @IsOptional() @MaxLength(256) reason?: string;
}
export interface CancelRoundReply extends StampedReply {
  roundId: RoundId;
  /** Present state of the round. */
  state: 'cancelled';
  /** Mode from the request. */
  mode: CancelMode;
  /** Number of groups that are requeued or dropped; `round.status` has `settled` when all are. */
  groups: Integer;
}
