import { Injectable, Logger } from '@nestjs/common';
import type { JobId, PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { PoolAudit } from '@broomwagon/state';

/** Not within the sweep, which must not wait for a look at all keys. */
const RECOUNTS_INTERVAL_MS = 1_000;
/** Counting reads every key of Redis once: a job that stays marked is counted again after this, milliseconds. */
const AGAIN_AFTER_MS = 5_000;

/**
 * Recounts a job if a transition has found an impossible count, and all jobs if Redis has lost changes.
 */
@Injectable()
export class RecountService {
  private readonly logger = new Logger(RecountService.name);
  private readonly triedAtMs = new Map<string, number>();

  constructor(private readonly audit: PoolAudit) {}

  /** Counts the marked jobs of a pool, all in one look at its keys. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('recounts', RECOUNTS_INTERVAL_MS)
  async recount(pool: PoolName): Promise<void> {
    const jobs = (await this.audit.markedJobs(pool)).filter((job) => this.isDue(pool, job));
    if (jobs.length === 0) return;
    const { mended, again } = await this.audit.recount(pool, jobs);
    if (mended.length > 0)
      this.logger.warn({ pool, jobs, mended }, 'Counts of jobs were corrected from their requests');
    for (const job of jobs) if (!again.includes(job)) this.triedAtMs.delete(`${pool}/${job}`);
  }

  private isDue(pool: PoolName, job: JobId): boolean {
    const name = `${pool}/${job}`;
    const known = this.triedAtMs.get(name);
    if (known !== undefined && Date.now() - known < AGAIN_AFTER_MS) return false;
    this.triedAtMs.set(name, Date.now());
    if (known === undefined) this.logger.log({ pool, job }, 'Redis lost data: the job is recounted');
    return true;
  }
}
