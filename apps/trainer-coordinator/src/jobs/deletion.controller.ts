import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  DeleteJobRequest,
  DeletePoolRequest,
  patternOf,
  type DeleteJobReply,
  type DeletePoolReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { DeletionService } from './deletion.service';

/** The operations `job.delete` and `pool.delete`. */
@Controller()
export class DeletionController {
  constructor(private readonly deletions: DeletionService) {}

  @MessagePattern(patternOf('job.delete'))
  job(
    @Payload(new ContractPipe(DeleteJobRequest)) { job, force }: DeleteJobRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<DeleteJobReply> {
    return this.deletions.deleteJob(pool, job, force ?? false);
  }

  @MessagePattern(patternOf('pool.delete'))
  pool(
    @Payload(new ContractPipe(DeletePoolRequest)) { force }: DeletePoolRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<DeletePoolReply> {
    return this.deletions.deletePool(pool, force ?? false);
  }
}
