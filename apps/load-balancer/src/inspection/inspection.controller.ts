import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { BroomwagonError, ListLeasesRequest, ListWorkersRequest, patternOf, type ReplyOf } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { InspectionStore } from '@broomwagon/state';

/** The operations `worker.list` and `lb.leases`: who holds what. */
@Controller()
export class InspectionController {
  constructor(private readonly inspections: InspectionStore) {}

  @MessagePattern(patternOf('worker.list'))
  workers(
    @Payload(new ContractPipe(ListWorkersRequest)) body: ListWorkersRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'worker.list'>> {
    return this.inspections.workers(context.pool, body.cursor);
  }

  @MessagePattern(patternOf('lb.leases'))
  async leases(
    @Payload(new ContractPipe(ListLeasesRequest)) body: ListLeasesRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.leases'>> {
    if (body.serverId !== undefined && body.workerId !== undefined) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Name a server or a worker, not both', { field: 'workerId' });
    }
    return this.inspections.leases(context.pool, body);
  }
}
