import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  CheckpointJobRequest,
  ListCheckpointsRequest,
  patternOf,
  RestoreJobRequest,
  type CheckpointJobReply,
  type ListCheckpointsReply,
  type RestoreJobReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { CheckpointStore } from '@broomwagon/state';
import { CheckpointService } from './checkpoint.service';

/** The operations `job.checkpoint`, `job.restore` and `job.checkpoints`. */
@Controller()
export class CheckpointController {
  constructor(
    private readonly store: CheckpointStore,
    private readonly checkpoints: CheckpointService,
  ) {}

  @MessagePattern(patternOf('job.checkpoint'))
  checkpoint(
    @Payload(new ContractPipe(CheckpointJobRequest)) body: CheckpointJobRequest,
    @Ctx() context: MessageContext,
  ): Promise<CheckpointJobReply> {
    return this.checkpoints.save(context.pool, body);
  }

  @MessagePattern(patternOf('job.restore'))
  restore(
    @Payload(new ContractPipe(RestoreJobRequest)) body: RestoreJobRequest,
    @Ctx() context: MessageContext,
  ): Promise<RestoreJobReply> {
    return this.checkpoints.restore(context.pool, body);
  }

  @MessagePattern(patternOf('job.checkpoints'))
  list(
    @Payload(new ContractPipe(ListCheckpointsRequest)) body: ListCheckpointsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ListCheckpointsReply> {
    return this.store.list(context.pool, body.job);
  }
}
