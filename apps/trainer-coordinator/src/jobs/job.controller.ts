import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  JobStatusRequest,
  ListJobsRequest,
  patternOf,
  ReconcileJobRequest,
  type JobStatus,
  type ListJobsReply,
  type ReconcileJobReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';
import { ReconcileService } from './reconcile.service';

/** The operations `job.status`, `job.list` and `job.reconcile`. */
@Controller()
export class JobController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly reconciling: ReconcileService,
  ) {}

  @MessagePattern(patternOf('job.status'))
  status(
    @Payload(new ContractPipe(JobStatusRequest)) body: JobStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<JobStatus> {
    return this.rounds.jobStatus(context.pool, body.job, body.stamp ?? undefined);
  }

  @MessagePattern(patternOf('job.reconcile'))
  reconcile(
    @Payload(new ContractPipe(ReconcileJobRequest)) body: ReconcileJobRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReconcileJobReply> {
    return this.reconciling.reconcile(context.pool, body);
  }

  @MessagePattern(patternOf('job.list'))
  list(
    @Payload(new ContractPipe(ListJobsRequest)) body: ListJobsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ListJobsReply> {
    return this.rounds.jobPage(context.pool, body.openOnly ?? false, body.cursor);
  }
}
