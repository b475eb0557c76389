import { RoundRequest, type StampedReply } from './common.dto';
import { IsIn, IsOptional, MaxLength } from 'class-validator';
import type { Integer, RoundId } from './scalars';

export const CANCEL_MODES = ['requeue', 'drop'] as const;
/** Treatment of the groups of a cancelled round. */
export type CancelMode = (typeof CANCEL_MODES)[number];

/**
 * `round.cancel`: cancels a round that is not closed. The step of the round is not counted, and a round with another
 * roundId may be opened. Workers get the same command as for a cut.
 */
export class CancelRoundRequest extends RoundRequest {
  /**
   * `requeue`: all groups of the round, also accepted groups, go to the long-tail queue with all tokens, under every
   * policy. `drop`: all groups are dropped, and their tokens count as waste.
   */
  @IsIn(CANCEL_MODES) mode!: CancelMode;
  /**
   * Reason in the event `round.cancelled`, and in `group.dropped` of each dropped group.
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
  /** Number of groups that are requeued or dropped. `round.status` reports `settled` when all of this is done. */
  groups: Integer;
}
