import type { Epoch, FailReply, GroupId, JobId, RoundId } from '@broomwagon/contracts';
import type { AttemptFence, SegmentArgs } from '../requests/request.types';

export type RequeueArgs = AttemptFence & SegmentArgs;
export interface RequeueAnswer {
  state: FailReply['state'];
  job: JobId;
  roundId: RoundId;
  /** Other samples of the group, whose holders are to be told. */
  aborts: AttemptFence[];
  /** This call completed the round, with fewer groups. */
  roundCompleted: boolean;
}

export interface LeavingPage {
  aborts: AttemptFence[];
  /** Where the next page starts; absent at the end. */
  cursor?: number;
}

export interface DropLongtailArgs {
  job: JobId;
  trainerEpoch: Epoch;
  stamp?: string;
  reason: string;
  /** Absent: all that are in the queue. */
  groupIds?: readonly GroupId[];
  /** Of the page before, when all are dropped. */
  upTo?: number;
}
export interface DropLongtailPage {
  dropped: GroupId[];
  /** Trained, dropped before, in a round, or never submitted. */
  notQueued: GroupId[];
  requests: number;
  tokens: number;
  /** To send with the next page of all; absent at the end. */
  upTo?: number;
  stamp: string;
}
