import { Injectable } from '@nestjs/common';
import type { GroupId, PoolName, DropLongtailReply, DropLongtailRequest, FailReply } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';
import type { AttemptFence, SegmentArgs } from '../requests/request.store';
import type { RoundName } from '../rounds/round.types';

/** Without a worker: by an operator. */
export type RequeueArgs = Pick<AttemptFence, 'requestId' | 'attempt'> & Partial<AttemptFence> & SegmentArgs;
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

const drop = transition<DropLongtailArgs, DropLongtailPage & { remainingIds: GroupId[] }>('longtail/drop');

/** What a holder hands in to the long-tail queue, and what leaves the queue for good. Safe to repeat. */
@Injectable()
export class LongtailStore extends storeOf({
  /** Takes an unfinished sample and its group out of their round: by its holder, or by an operator. */
  requeue: transition<RequeueArgs, RequeueAnswer>('longtail/requeue'),
  /** One page of the groups on their way to the queue of which workers still have samples, to be told again. */
  repeat: transition<{ cursor?: number }, LeavingPage>('longtail/repeat'),
}) {
  /** Drops the named groups (at most 128), or one page of all. @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED */
  async drop(pool: PoolName, args: DropLongtailArgs): Promise<DropLongtailPage> {
    const { groupIds, ...common } = args;
    if (groupIds === undefined) return this.runner.run(drop, pool, common);
    const sum = { dropped: [] as GroupId[], notQueued: [] as GroupId[], requests: 0, tokens: 0 };
    let { stamp } = args;
    for (let left = groupIds; ;) {
      const page = await this.runner.run(drop, pool, { ...common, stamp, groupIds: left });
      sum.dropped.push(...page.dropped);
      sum.notQueued.push(...page.notQueued);
      sum.requests += page.requests;
      sum.tokens += page.tokens;
      left = page.remainingIds;
      ({ stamp } = page);
      if (left.length === 0) return { ...sum, stamp: page.stamp };
    }
  }
}
