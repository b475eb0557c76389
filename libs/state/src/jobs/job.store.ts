import type { ConfigureJobReply, JobId, PoolName } from '@broomwagon/contracts';
import { script, type ScriptRunner } from '../scripts/script-runner';

/** A quota to set; see JobQuota. */
export interface QuotaArgs {
  weight: number;
  maxInFlight?: number;
}
interface ConfigureScriptArgs extends Partial<QuotaArgs> {
  job: JobId;
  set: boolean;
}
/** `madeRoom`: parked claims may be granted. */
export type ConfigureJobAnswer = ConfigureJobReply & { madeRoom: boolean };

const configure = script<ConfigureScriptArgs, ConfigureJobAnswer>('jobs/configure');

/** What is set for a job from outside. Throws BroomwagonError UNAVAILABLE. */
export class JobStore {
  constructor(private readonly scripts: ScriptRunner) {}

  /** Sets the quota of a job, or only reads it. */
  configure(pool: PoolName, job: JobId, quota?: QuotaArgs): Promise<ConfigureJobAnswer> {
    return this.scripts.run(configure, pool, { job, set: quota !== undefined, ...quota });
  }
}
