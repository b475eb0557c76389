import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  CloseRoundRequest,
  NextRoundRequest,
  OpenRoundRequest,
  patternOf,
  RoundResultsRequest,
  RoundStatusRequest,
  SubmitGroupsRequest,
  TakeoverRoundRequest,
  type CloseRoundReply,
  type NextRoundReply,
  type OpenRoundReply,
  type RoundResultsReply,
  type RoundStatus,
  type SubmitGroupsReply,
  type TakeoverRoundReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext, type PARKED } from '@broomwagon/messaging';
import { RedisMemory, RoundStore } from '@broomwagon/state';
import { ResultsService } from './results.service';
import { RoundService } from './round.service';
import { SubmissionService } from './submission.service';

/** The operations `round.*`: what a trainer says. */
@Controller()
export class RoundController {
  constructor(
    private readonly store: RoundStore,
    private readonly rounds: RoundService,
    private readonly submissions: SubmissionService,
    private readonly results: ResultsService,
    private readonly memory: RedisMemory,
  ) {}

  @MessagePattern(patternOf('round.next'))
  next(
    @Payload(new ContractPipe(NextRoundRequest)) body: NextRoundRequest,
    @Ctx() context: MessageContext,
  ): Promise<NextRoundReply> {
    return this.rounds.next(context.pool, body);
  }

  @MessagePattern(patternOf('round.open'))
  open(
    @Payload(new ContractPipe(OpenRoundRequest)) body: OpenRoundRequest,
    @Ctx() context: MessageContext,
  ): Promise<OpenRoundReply> {
    return this.rounds.open(context.pool, body);
  }

  @MessagePattern(patternOf('round.takeover'))
  takeover(
    @Payload(new ContractPipe(TakeoverRoundRequest)) body: TakeoverRoundRequest,
    @Ctx() context: MessageContext,
  ): Promise<TakeoverRoundReply> {
    return this.store.takeover(context.pool, body.job, body.takeoverId);
  }

  @MessagePattern(patternOf('round.submit'))
  submit(
    @Payload(new ContractPipe(SubmitGroupsRequest)) body: SubmitGroupsRequest,
    @Ctx() context: MessageContext,
  ): Promise<SubmitGroupsReply> {
    return this.submissions.submit(context.pool, body);
  }

  @MessagePattern(patternOf('round.status'))
  async status(
    @Payload(new ContractPipe(RoundStatusRequest)) body: RoundStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<RoundStatus> {
    const { job, roundId, trainerEpoch, stamp } = body;
    const status = await this.store.status(context.pool, { job, roundId, trainerEpoch, stamp });
    const full = this.memory.refusal();
    const isOpen = status.state === 'opening' || status.state === 'open';
    if (full && isOpen) status.blockedReason = { code: 'STORE_FULL', message: full.message };
    return status;
  }

  @MessagePattern(patternOf('round.results'))
  page(
    @Payload(new ContractPipe(RoundResultsRequest)) body: RoundResultsRequest,
    @Ctx() context: MessageContext,
  ): Promise<RoundResultsReply | typeof PARKED> {
    return this.results.results(context.pool, body, context.replyTo);
  }

  @MessagePattern(patternOf('round.close'))
  close(
    @Payload(new ContractPipe(CloseRoundRequest)) body: CloseRoundRequest,
    @Ctx() context: MessageContext,
  ): Promise<CloseRoundReply> {
    return this.rounds.close(context.pool, body);
  }
}
