import { Injectable } from '@nestjs/common';
import type { GroupId, PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type { DropLongtailArgs, DropLongtailPage, LeavingPage, RequeueAnswer, RequeueArgs } from './longtail.types';

const requeue = transition<RequeueArgs, RequeueAnswer>('longtail/requeue');
const repeat = transition<{ cursor: number }, LeavingPage>('longtail/repeat');
const drop = transition<DropLongtailArgs, DropLongtailPage & { remainingIds: GroupId[] }>('longtail/drop');

/**
 * What goes into the long-tail queue by the word of its holder, and what leaves it for good. One script each, safe to
 * repeat. Every method throws BroomwagonError with the codes its script names, or UNAVAILABLE.
 */
@Injectable()
export class LongtailStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /** Takes an unfinished sample back with its tokens. @throws FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED */
  requeue(pool: PoolName, args: RequeueArgs): Promise<RequeueAnswer> {
    return this.scripts.run(requeue, pool, args);
  }

  /** One page of the groups on their way to the queue of which workers still have samples, to be told again. */
  repeat(pool: PoolName, cursor: number): Promise<LeavingPage> {
    return this.scripts.run(repeat, pool, { cursor });
  }

  /** Drops the named groups (at most 128), or one page of all. @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED */
  async drop(pool: PoolName, args: DropLongtailArgs): Promise<DropLongtailPage> {
    const { groupIds, ...common } = args;
    if (groupIds === undefined) return this.scripts.run(drop, pool, common);
    const sum = { dropped: [] as GroupId[], notQueued: [] as GroupId[], requests: 0, tokens: 0 };
    let { stamp } = args;
    for (let left = groupIds; ;) {
      const page = await this.scripts.run(drop, pool, { ...common, stamp, groupIds: left });
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
