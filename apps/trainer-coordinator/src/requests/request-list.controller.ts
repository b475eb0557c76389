import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { BroomwagonError, ListRequestsRequest, patternOf, type ListRequestsReply } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { InspectionStore } from '@broomwagon/state';

/** The operation `request.list`: what has not ended, and who has it. */
@Controller()
export class RequestListController {
  constructor(private readonly inspections: InspectionStore) {}

  @MessagePattern(patternOf('request.list'))
  async list(
    @Payload(new ContractPipe(ListRequestsRequest)) body: ListRequestsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ListRequestsReply> {
    if ((body.job === undefined) === (body.workerId === undefined)) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Name exactly one of job and workerId', { field: 'job' });
    }
    return this.inspections.requests(context.pool, body);
  }
}
