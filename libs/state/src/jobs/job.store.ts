import { Injectable } from '@nestjs/common';
import type { ConfigureJobReply, JobId, JobQuota, PoolName } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

/** `madeRoom`: parked claims may be granted. */
export type ConfigureJobAnswer = ConfigureJobReply & { madeRoom: boolean };

const configure = transition<Partial<JobQuota> & { job: JobId; set: boolean }, ConfigureJobAnswer>('jobs/configure');

/** What the payloads of a job leave it. */
export interface PayloadRoomArgs {
  job: JobId;
  usedBytes: number;
  quotaBytes: number;
  /** Reserved for each token a sample may have. */
  bytesPerToken: number;
  /** The store has just refused tokens. */
  isRefused: boolean;
}
/** `changed`: it was otherwise before; `madeRoom`: parked claims may be granted. */
export interface PayloadRoomAnswer {
  blocked: boolean;
  changed: boolean;
  madeRoom: boolean;
}

/** What is set for a job from outside. */
@Injectable()
export class JobStore extends storeOf({
  /** Blocks the claims of a job while its payloads have no room, or ends that. */
  payloadRoom: transition<PayloadRoomArgs, PayloadRoomAnswer>('jobs/payload-room'),
}) {
  /** Sets the quota of a job, or only reads it. */
  configure(pool: PoolName, job: JobId, quota?: JobQuota & { weight: number }): Promise<ConfigureJobAnswer> {
    return this.runner.run(configure, pool, { job, set: quota !== undefined, ...quota });
  }
}
