import { Injectable } from '@nestjs/common';
import type { GroupId, PoolName, DropLongtailReply, DropLongtailRequest, FailReply } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';
import type { AttemptFence, SegmentArgs } from '../requests/request.store';
import type { RoundName } from '../rounds/round.types';

/** Arguments of a requeue. Without a worker, an operator requeues the sample. */
export type RequeueArgs = Pick<AttemptFence, 'requestId' | 'attempt'> & Partial<AttemptFence> & SegmentArgs;
export interface RequeueAnswer extends FailReply, RoundName {
  /** Attempts for other samples of the group, whose holders must be told to stop. */
  aborts: AttemptFence[];
  /** True when this call completed the round, with fewer groups. */
  roundCompleted: boolean;
}

export interface LeavingPage {
  aborts: AttemptFence[];
  /** Where the next page starts; absent at the end. */
  cursor?: number;
}

/** Arguments of a drop. Without `groupIds`, all groups in the queue are dropped. */
export interface DropLongtailArgs extends Omit<DropLongtailRequest, 'all' | 'cursor'> {
  /** `upTo` of the previous page, when all groups are dropped. */
  upTo?: number;
}
export interface DropLongtailPage extends Omit<DropLongtailReply, 'cursor'> {
  /** `upTo` to send with the next page when all groups are dropped; absent at the end. */
  upTo?: number;
}

const drop = transition<DropLongtailArgs, DropLongtailPage & { remainingIds: GroupId[] }>('longtail/drop');

/** Puts samples and their groups into the long-tail queue, and drops groups of the queue. Safe to repeat. */
@Injectable()
export class LongtailStore extends createStoreClass({
  /** Takes an unfinished sample and its group out of their round. The holder or an operator has decided this. */
  requeue: transition<RequeueArgs, RequeueAnswer>('longtail/requeue'),
  /** One page of groups on their way to the queue; workers that still hold samples are told again. */
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
