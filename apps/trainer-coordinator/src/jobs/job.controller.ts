import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  JobStatusRequest,
  ListJobsRequest,
  patternOf,
  type JobStatus,
  type ListJobsReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';

/** The operations `job.status` and `job.list`: reads of the books. */
@Controller()
export class JobController {
  constructor(private readonly rounds: RoundStore) {}

  @MessagePattern(patternOf('job.status'))
  status(
    @Payload(new ContractPipe(JobStatusRequest)) body: JobStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<JobStatus> {
    return this.rounds.jobStatus(context.pool, body.job);
  }

  @MessagePattern(patternOf('job.list'))
  async list(
    @Payload(new ContractPipe(ListJobsRequest)) body: ListJobsRequest,
    @Ctx() context: MessageContext,
  ): Promise<ListJobsReply> {
    return { jobs: await this.rounds.listJobs(context.pool, body.openOnly ?? false) };
  }
}
