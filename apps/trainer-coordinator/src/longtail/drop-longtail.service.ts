import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  type DropLongtailReply,
  type DropLongtailRequest,
  type PoolName,
} from '@broomwagon/contracts';
import { LongtailStore } from '@broomwagon/state';

/** Drops groups of the long-tail queue. The sweep deletes them with their payloads. */
@Injectable()
export class DropLongtailService {
  constructor(private readonly longtail: LongtailStore) {}

  /** @throws BroomwagonError VALIDATION_FAILED, GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, UNAVAILABLE; repeating is safe */
  async drop(pool: PoolName, body: DropLongtailRequest): Promise<DropLongtailReply> {
    const { job, trainerEpoch, stamp, groupIds, all, reason, cursor } = body;
    if ((groupIds == null) === (all == null)) {
      throw new BroomwagonError('VALIDATION_FAILED', 'exactly one of groupIds and all is needed', {
        field: 'groupIds',
      });
    }
    const named = groupIds == null ? { upTo: cursor ?? undefined } : { groupIds: [...new Set(groupIds)] };
    const { upTo, ...page } = await this.longtail.drop(pool, { job, trainerEpoch, stamp, reason, ...named });
    return upTo === undefined ? page : { ...page, cursor: upTo };
  }
}
