import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  CheckpointRequest,
  ClaimRequest,
  CompleteRequest,
  FailRequest,
  patternOf,
  RequestSegmentsRequest,
  type CheckpointReply,
  type ClaimReply,
  type CompleteReply,
  type FailReply,
  type RequestSegmentsReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext, type PARKED } from '@broomwagon/messaging';
import { RequestService } from './request.service';

/** The operations `request.*`: workers take work, save partial tokens, end an attempt. */
@Controller()
export class RequestController {
  constructor(private readonly requests: RequestService) {}

  @MessagePattern(patternOf('request.claim'))
  claim(
    @Payload(new ContractPipe(ClaimRequest)) body: ClaimRequest,
    @Ctx() context: MessageContext,
  ): Promise<ClaimReply | typeof PARKED> {
    return this.requests.claim(context.pool, body, context.replyTo);
  }

  @MessagePattern(patternOf('request.segments'))
  segments(
    @Payload(new ContractPipe(RequestSegmentsRequest)) body: RequestSegmentsRequest,
    @Ctx() context: MessageContext,
  ): Promise<RequestSegmentsReply> {
    return this.requests.segments(context.pool, body);
  }

  @MessagePattern(patternOf('request.checkpoint'))
  checkpoint(
    @Payload(new ContractPipe(CheckpointRequest)) body: CheckpointRequest,
    @Ctx() context: MessageContext,
  ): Promise<CheckpointReply> {
    return this.requests.checkpoint(context.pool, body);
  }

  @MessagePattern(patternOf('request.complete'))
  complete(
    @Payload(new ContractPipe(CompleteRequest)) body: CompleteRequest,
    @Ctx() context: MessageContext,
  ): Promise<CompleteReply> {
    return this.requests.complete(context.pool, body);
  }

  @MessagePattern(patternOf('request.fail'))
  fail(@Payload(new ContractPipe(FailRequest)) body: FailRequest, @Ctx() context: MessageContext): Promise<FailReply> {
    return this.requests.fail(context.pool, body);
  }
}
