import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ConfigureJobRequest, patternOf, type ConfigureJobReply } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { JobStore } from '@broomwagon/state';
import { GrantService } from '../requests/grant.service';

const DEFAULT_WEIGHT = 1;

/** `job.configure`. */
@Controller()
export class JobQuotaController {
  constructor(
    private readonly jobs: JobStore,
    private readonly grants: GrantService,
  ) {}

  @MessagePattern(patternOf('job.configure'))
  async configure(
    @Payload(new ContractPipe(ConfigureJobRequest)) { job, quota }: ConfigureJobRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<ConfigureJobReply> {
    const wish = quota == null ? undefined : { ...quota, weight: quota.weight ?? DEFAULT_WEIGHT };
    const { madeRoom, ...answer } = await this.jobs.configure(pool, job, wish);
    if (madeRoom) this.grants.soon(pool);
    return answer;
  }
}
