import type {
  AttemptId,
  CheckpointReply,
  Claim,
  CompleteReply,
  Epoch,
  FailReason,
  FailReply,
  JobId,
  RequestId,
  RoundId,
  ServerId,
  WorkerId,
} from '@broomwagon/contracts';

/** An attempt of a worker epoch; the fence of everything that is said about a request. */
export interface AttemptFence {
  requestId: RequestId;
  attempt: AttemptId;
  workerId: WorkerId;
  workerEpoch: Epoch;
}
/** A segment as the scripts take it: its JSON, so that no number changes on the way, and its tokens. */
export interface SegmentArgs {
  segment?: string;
  tokens: number;
}

export interface ClaimArgs {
  claimId: string;
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** At most 128. */
  max: number;
  /** Only requests of this job. */
  job?: JobId;
  waitMs?: number;
  /** Inbox for the answer of a parked claim; without it the claim is never parked. */
  replyTo?: string;
}
export interface ClaimAnswer {
  claims: Claim[];
  /** The answer goes to `replyTo` later. */
  parked?: boolean;
}
/** An answer for a parked claim. */
export interface ClaimGrant {
  replyTo: string;
  claims: Claim[];
  /** The worker epoch is expired. */
  fenced?: boolean;
}

export type CheckpointArgs = AttemptFence & SegmentArgs & { serverId?: ServerId; generatedMs?: number };
export type CheckpointAnswer = CheckpointReply;

export type CompleteArgs = AttemptFence & SegmentArgs & { finishReason: 'stop' | 'length' };
export interface CompleteAnswer extends CompleteReply {
  job: JobId;
  roundId: RoundId;
  /** Surplus samples of the group. */
  aborts: AttemptFence[];
  /** A job that could give no more has room again: parked claims may be granted. */
  madeRoom: boolean;
}

export type FailArgs = AttemptFence &
  SegmentArgs & {
    countsAsFailure: boolean;
    retryable: boolean;
    reason: FailReason;
    message?: string;
    missingRef?: string;
    lostTokens?: number;
    generatedMs?: number;
  };
export interface FailAnswer extends FailReply {
  job: JobId;
  roundId: RoundId;
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
