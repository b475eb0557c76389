import type { DropLongtailReply, DropLongtailRequest, FailReply } from '@broomwagon/contracts';
import type { AttemptFence, SegmentArgs } from '../requests/request.types';
import type { RoundName } from '../rounds/round.types';

export type RequeueArgs = AttemptFence & SegmentArgs;
export interface RequeueAnswer extends FailReply, RoundName {
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

/** Without `groupIds`: all that are in the queue. */
export interface DropLongtailArgs extends Omit<DropLongtailRequest, 'all' | 'cursor'> {
  /** Of the page before, when all are dropped. */
  upTo?: number;
}
export interface DropLongtailPage extends Omit<DropLongtailReply, 'cursor'> {
  /** To send with the next page of all; absent at the end. */
  upTo?: number;
}
