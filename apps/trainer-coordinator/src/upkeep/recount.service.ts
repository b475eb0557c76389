import { Injectable, Logger } from '@nestjs/common';
import type { JobId, PoolName } from '@broomwagon/contracts';
import { PoolAudit } from '@broomwagon/state';

/** Counting reads every key of Redis once: a job that somebody else counts is looked at again after this, milliseconds. */
const AGAIN_AFTER_MS = 5_000;

/** Counts jobs anew of which a transition has found a count that cannot be, and all jobs when Redis has lost something. */
@Injectable()
export class RecountService {
  private readonly logger = new Logger(RecountService.name);
  private readonly triedAtMs = new Map<string, number>();

  constructor(private readonly audit: PoolAudit) {}

  /** Redis has lost something: marks the jobs that it may have hit. @throws BroomwagonError UNAVAILABLE */
  async check(pool: PoolName, generation: string): Promise<void> {
    await this.audit.markCounts(pool, generation);
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async recount(pool: PoolName, jobs: readonly JobId[]): Promise<void> {
    for (const job of jobs) {
      const name = `${pool}/${job}`;
      const known = this.triedAtMs.get(name);
      if (known !== undefined && Date.now() - known < AGAIN_AFTER_MS) continue;
      this.triedAtMs.set(name, Date.now());
      if (known === undefined) this.logger.log({ pool, job }, 'Redis lost data: the job is counted anew');
      const { mended, busy } = await this.audit.recount(pool, job);
      if (mended.length > 0) this.logger.warn({ pool, job, mended }, 'Counts of the job were mended from its requests');
      if (!busy) this.triedAtMs.delete(name);
    }
  }
}
