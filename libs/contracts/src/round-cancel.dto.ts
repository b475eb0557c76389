import { IsIn, IsOptional, MaxLength } from 'class-validator';
import { IsEpoch } from './epochs';
import { IsId, type Epoch, type JobId, type RoundId } from './ids';
import { IsStamp, type Stamp } from './stamp';
import type { Integer } from './integers';

export const CANCEL_MODES = ['requeue', 'drop'] as const;
/** What becomes of the groups of a round that is given up. */
export type CancelMode = (typeof CANCEL_MODES)[number];

/**
 * `round.cancel`: a round that is not closed is given up; its step is not counted, and another round may be opened,
 * with another roundId. Holders are told as in a cut.
 */
export class CancelRoundRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /**
   * `requeue`: all its groups, the accepted ones too, go to the long-tail queue with all they have, under every policy.
   * `drop`: they are dropped, and their tokens count as waste.
   */
  @IsIn(CANCEL_MODES) mode!: CancelMode;
  /**
   * Kept with what is dropped.
   * @default 'round-cancelled'
   */
  @IsOptional() @MaxLength(256) reason?: string;
}
export interface CancelRoundReply {
  roundId: RoundId;
  /** State of the round now. */
  state: 'cancelled';
  /** That of the request. */
  mode: CancelMode;
  /** Groups that are given back or dropped; `round.status` says `settled` when all are. */
  groups: Integer;
  stamp: Stamp;
}
