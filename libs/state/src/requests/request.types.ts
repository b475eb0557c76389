import type {
  SaveRequest,
  Claim,
  ClaimReply,
  ClaimRequest,
  CompleteReply,
  CompleteRequest,
  FailReply,
  FailRequest,
} from '@broomwagon/contracts';

/** An attempt of a worker epoch; the fence of everything that is said about a request. */
export type AttemptFence = Pick<CompleteRequest, 'requestId' | 'attempt' | 'workerId' | 'workerEpoch'>;
/** A segment as the scripts take it: its JSON, so that no number changes on the way, and its tokens. */
export interface SegmentArgs {
  segment?: string;
  tokens: number;
}

export interface ClaimArgs extends ClaimRequest {
  /** Inbox for the answer of a parked claim; without it the claim is never parked. */
  replyTo?: string;
}
export interface ClaimAnswer extends ClaimReply {
  /** The answer goes to `replyTo` later. */
  parked?: boolean;
}
/** An answer for a parked claim. */
export interface ClaimGrant extends ClaimReply {
  replyTo: string;
  /** The worker epoch is expired. */
  fenced?: boolean;
}

export type SaveArgs = Omit<SaveRequest, 'segment'> & SegmentArgs;

export type CompleteArgs = Omit<CompleteRequest, 'segment'> &
  SegmentArgs & {
    /** The payload store does not have the segment. */
    isMissing?: boolean;
  };
export interface CompleteAnswer extends CompleteReply, Pick<Claim, 'job' | 'roundId'> {
  /** Surplus samples of the group. */
  aborts: AttemptFence[];
  /** A job that could give no more has room again: parked claims may be granted. */
  madeRoom: boolean;
}

export type FailArgs = Omit<FailRequest, 'segment'> & SegmentArgs & { countsAsFailure: boolean };
export interface FailAnswer extends FailReply, Pick<Claim, 'job' | 'roundId'> {
  /** Other samples of a group that failed. */
  aborts: AttemptFence[];
  /** This call completed the round, with fewer groups. */
  roundCompleted: boolean;
  /** A job that was at its cap has room again: parked claims may be granted. */
  madeRoom: boolean;
}

export interface ExpiredAnswer {
  returned: number;
  /** Of them may be claimed again. */
  pending: number;
}
