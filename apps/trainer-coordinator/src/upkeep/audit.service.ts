import { Injectable, Logger } from '@nestjs/common';
import { type AuditPoolReply, type JobId, LIMITS, type PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { type DueWork, PoolAudit } from '@broomwagon/state';
import { PagedWork } from './paged-work';

/**
 * Time after which an audit ends with the findings that are proven so far, milliseconds. Must be less than
 * CALL_TIMEOUT_MS of admin-api.
 */
const MAX_MS = 8_000;
/** Interval of recounts. They are a task of their own, so that the sweep does not wait for a scan of all keys. */
const RECOUNTS_INTERVAL_MS = 1_000;
/**
 * Minimum time between two recounts of a job that stays marked, milliseconds: a recount reads every key of Redis once.
 */
const AGAIN_AFTER_MS = 5_000;

/** Audits counts on request. Recounts a job with an impossible count, and all jobs after a loss in Redis. */
@Injectable()
export class AuditService {
  private readonly logger = new Logger(AuditService.name);
  /** Running audits: an audit reads a whole pool, so a replica runs one audit of a pool at a time. */
  private readonly running = new Map<PoolName, Promise<AuditPoolReply>>();
  private readonly triedAtMs = new Map<string, number>();

  constructor(private readonly audits: PoolAudit) {}

  /** Audits a pool. A call during an audit gets the result of that audit. @throws BroomwagonError UNAVAILABLE */
  audit(pool: PoolName): Promise<AuditPoolReply> {
    let running = this.running.get(pool);
    if (running === undefined) {
      running = this.run(pool).finally(() => this.running.delete(pool));
      this.running.set(pool, running);
    }
    return running;
  }

  /** Recounts the marked jobs of a pool, all in one scan of its keys. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('recounts', RECOUNTS_INTERVAL_MS)
  async recount(pool: PoolName): Promise<void> {
    const jobs = (await this.audits.markedJobs(pool)).filter((job) => this.isDue(pool, job));
    if (jobs.length === 0) return;
    const { mended, again } = await this.audits.recount(pool, jobs);
    if (mended.length > 0)
      this.logger.warn({ pool, jobs, mended }, 'Counts of jobs were corrected from their requests');
    for (const job of jobs) if (!again.includes(job)) this.triedAtMs.delete(`${pool}/${job}`);
  }

  /** Marks the jobs whose counts were not checked since the pool's generation was renewed. */
  @PagedWork({ order: 110, isDue: ({ uncheckedGeneration }) => uncheckedGeneration !== undefined })
  async markUnchecked(pool: PoolName, { uncheckedGeneration }: DueWork): Promise<void> {
    await this.audits.markCounts(pool, uncheckedGeneration!);
  }

  private isDue(pool: PoolName, job: JobId): boolean {
    const name = `${pool}/${job}`;
    const known = this.triedAtMs.get(name);
    if (known !== undefined && Date.now() - known < AGAIN_AFTER_MS) return false;
    this.triedAtMs.set(name, Date.now());
    if (known === undefined) this.logger.log({ pool, job }, 'Redis lost data: the job is recounted');
    return true;
  }

  private async run(pool: PoolName): Promise<AuditPoolReply> {
    const { balanced, findings, counts, unproven } = await this.audits.run(pool, { maxMs: MAX_MS });
    return {
      balanced,
      findings: findings
        .slice(0, LIMITS.page)
        .map(({ check, where, detail }) => ({ check, message: `${where}: ${detail}` })),
      findingCount: findings.length,
      counts: { ...counts },
      unproven: unproven.slice(0, LIMITS.page),
    };
  }
}
