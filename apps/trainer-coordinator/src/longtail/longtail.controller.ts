import { Controller } from '@nestjs/common';
import {
  invalidField,
  DropLongtailRequest,
  LongtailListRequest,
  LongtailStatsRequest,
  RequeueRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { LongtailStore, RoundStore } from '@broomwagon/state';
import { RequeueService } from './requeue.service';

@Controller()
export class LongtailController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly longtail: LongtailStore,
    private readonly requeues: RequeueService,
  ) {}

  @Operation('longtail.requeue')
  requeue(body: RequeueRequest, { pool }: MessageContext) {
    return this.requeues.requeue(pool, body);
  }

  /** The sweep deletes dropped groups with their payloads. */
  @Operation('longtail.drop')
  async drop({ groupIds, all, cursor, ...body }: DropLongtailRequest, { pool }: MessageContext) {
    if ((groupIds === undefined) === (all === undefined)) {
      throw invalidField('groupIds', 'exactly one of groupIds and all is required');
    }
    const named = groupIds === undefined ? { upTo: cursor } : { groupIds: [...new Set(groupIds)] };
    const { upTo, ...page } = await this.longtail.drop(pool, { ...body, ...named });
    return upTo === undefined ? page : { ...page, cursor: upTo };
  }

  @Operation('longtail.stats')
  async stats({ job }: LongtailStatsRequest, { pool }: MessageContext) {
    return (await this.rounds.jobStatus(pool, { job })).longtail;
  }

  @Operation('longtail.list')
  list(body: LongtailListRequest, { pool }: MessageContext) {
    return this.rounds.listLongtail(pool, body);
  }
}
