import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  DropLongtailRequest,
  LongtailListRequest,
  LongtailStatsRequest,
  patternOf,
  RequeueRequest,
  type DropLongtailReply,
  type LongtailListReply,
  type LongtailStats,
  type RequeueReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';
import { DropLongtailService } from './drop-longtail.service';
import { RequeueService } from './requeue.service';

/** The operations `longtail.*`. */
@Controller()
export class LongtailController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly requeues: RequeueService,
    private readonly drops: DropLongtailService,
  ) {}

  @MessagePattern(patternOf('longtail.requeue'))
  requeue(
    @Payload(new ContractPipe(RequeueRequest)) body: RequeueRequest,
    @Ctx() context: MessageContext,
  ): Promise<RequeueReply> {
    return this.requeues.requeue(context.pool, body);
  }

  @MessagePattern(patternOf('longtail.drop'))
  drop(
    @Payload(new ContractPipe(DropLongtailRequest)) body: DropLongtailRequest,
    @Ctx() context: MessageContext,
  ): Promise<DropLongtailReply> {
    return this.drops.drop(context.pool, body);
  }

  @MessagePattern(patternOf('longtail.stats'))
  async stats(
    @Payload(new ContractPipe(LongtailStatsRequest)) body: LongtailStatsRequest,
    @Ctx() context: MessageContext,
  ): Promise<LongtailStats> {
    return (await this.rounds.jobStatus(context.pool, body.job)).longtail;
  }

  @MessagePattern(patternOf('longtail.list'))
  list(
    @Payload(new ContractPipe(LongtailListRequest)) body: LongtailListRequest,
    @Ctx() context: MessageContext,
  ): Promise<LongtailListReply> {
    return this.rounds.listLongtail(context.pool, body.job, body.cursor ?? 0);
  }
}
