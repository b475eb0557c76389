import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { AbortRequestsRequest, patternOf, type AbortRequestsReply } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { AbortService } from './abort.service';

/** `request.abort`. */
@Controller()
export class RequestAbortController {
  constructor(private readonly aborts: AbortService) {}

  @MessagePattern(patternOf('request.abort'))
  abort(
    @Payload(new ContractPipe(AbortRequestsRequest)) body: AbortRequestsRequest,
    @Ctx() context: MessageContext,
  ): Promise<AbortRequestsReply> {
    return this.aborts.abort(context.pool, body);
  }
}
