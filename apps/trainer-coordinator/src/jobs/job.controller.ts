import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  JobStatusRequest,
  ListJobsRequest,
  LongtailListRequest,
  LongtailStatsRequest,
  patternOf,
  type JobStatus,
  type ListJobsReply,
  type LongtailListReply,
  type LongtailStats,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';

/** The operations `job.*` and `longtail.*`: reads of the books. */
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

  @MessagePattern(patternOf('longtail.stats'))
  async longtailStats(
    @Payload(new ContractPipe(LongtailStatsRequest)) body: LongtailStatsRequest,
    @Ctx() context: MessageContext,
  ): Promise<LongtailStats> {
    return (await this.rounds.jobStatus(context.pool, body.job)).longtail;
  }

  @MessagePattern(patternOf('longtail.list'))
  longtailList(
    @Payload(new ContractPipe(LongtailListRequest)) body: LongtailListRequest,
    @Ctx() context: MessageContext,
  ): Promise<LongtailListReply> {
    return this.rounds.listLongtail(context.pool, body.job, body.cursor ?? 0);
  }
}
