import { Injectable } from '@nestjs/common';
import type { ConfigureJobReply, JobId, JobQuota, PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';

interface ConfigureScriptArgs extends Partial<JobQuota> {
  job: JobId;
  set: boolean;
}
/** `madeRoom`: parked claims may be granted. */
export type ConfigureJobAnswer = ConfigureJobReply & { madeRoom: boolean };

const configure = transition<ConfigureScriptArgs, ConfigureJobAnswer>('jobs/configure');

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
/** `madeRoom`: parked claims may be granted. */
export interface PayloadRoomAnswer {
  blocked: boolean;
  changed: boolean;
  madeRoom: boolean;
}
const payloadRoom = transition<PayloadRoomArgs, PayloadRoomAnswer>('jobs/payload-room');

/** What is set for a job from outside. Throws BroomwagonError UNAVAILABLE. */
@Injectable()
export class JobStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /** Blocks the claims of a job while its payloads have no room, or ends that. */
  payloadRoom(pool: PoolName, args: PayloadRoomArgs): Promise<PayloadRoomAnswer> {
    return this.scripts.run(payloadRoom, pool, args);
  }

  /** Sets the quota of a job, or only reads it. */
  configure(pool: PoolName, job: JobId, quota?: JobQuota & { weight: number }): Promise<ConfigureJobAnswer> {
    return this.scripts.run(configure, pool, { job, set: quota !== undefined, ...quota });
  }
}
