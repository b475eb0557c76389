import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { DeleteJobReply, DeletePoolReply, JobId, PoolName } from '@broomwagon/contracts';
import { Periodically } from '@broomwagon/platform';
import { DeletionStore, PoolDirectory, RoundStore, SessionStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { SweepService } from '../upkeep/sweep.service';

const IDLE_INTERVAL_MS = 3_600_000;

@Injectable()
export class DeletionService {
  private readonly logger = new Logger(DeletionService.name);

  constructor(
    private readonly deletions: DeletionStore,
    private readonly rounds: RoundStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: SweepService,
    private readonly sessions: SessionStore,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError JOB_IN_USE, UNAVAILABLE */
  async deleteJob(pool: PoolName, job: JobId, force: boolean): Promise<DeleteJobReply> {
    let step = await this.deletions.deleteJob(pool, job, force);
    if (step.state === 'open') {
      const { roundId } = step;
      const { trainerEpoch } = await this.rounds.takeover(pool, { job, takeoverId: `delete-${randomUUID()}` });
      await this.rounds.cancel(pool, { job, roundId, trainerEpoch, mode: 'drop', reason: 'job.delete' });
      await this.pools.add(pool);
      await this.sweeper.sweep(pool);
      step = await this.deletions.deleteJob(pool, job, force);
    }
    if (step.state !== 'deleted') return { job, state: 'deleting' };
    const sessions = await this.sessions.finishJob(pool, job);
    this.logger.log({ pool, job, sessions }, 'A job was deleted');
    return { job, state: 'deleted' };
  }

  /** @throws BroomwagonError POOL_IN_USE, UNAVAILABLE */
  async deletePool(pool: PoolName, force: boolean): Promise<DeletePoolReply> {
    const jobs = await this.rounds.allJobs(pool, false);
    await this.deletions.deletePool(pool, jobs, force);
    this.logger.log({ pool, jobs: jobs.length }, 'A pool was deleted');
    return { pool, jobs: jobs.length };
  }

  /** Deletes jobs and pools that were idle for JOB_IDLE_MS or POOL_IDLE_MS. @throws BroomwagonError UNAVAILABLE */
  @Periodically('delete-idle', IDLE_INTERVAL_MS)
  async deleteAllIdle(): Promise<void> {
    const served = this.config.servedPools();
    for (const pool of served === '*' ? await this.pools.list() : served) await this.deleteIdle(pool);
  }

  /** Deletes the idle jobs of a pool, and the pool if it is idle. @throws BroomwagonError UNAVAILABLE */
  async deleteIdle(pool: PoolName): Promise<void> {
    const { jobIdleMs, poolIdleMs } = this.config;
    // Time 0 still lists jobs that a dead process has begun to delete.
    const beforeMs = jobIdleMs === 0 ? 0 : Date.now() - jobIdleMs;
    for await (const { jobs } of this.rounds.pages('listJobs', pool, { idleBeforeMs: beforeMs })) {
      for (const job of jobs) {
        await this.deleteJob(pool, job, false).catch((error: unknown) => {
          this.logger.warn({ err: error, pool, job }, 'An idle job was not deleted');
        });
      }
    }
    const { awake, servers, jobs, lastMs } = await this.pools.readActivity(pool);
    const isIdle = poolIdleMs > 0 && !awake && servers === 0 && jobs === 0 && lastMs < Date.now() - poolIdleMs;
    if (isIdle) await this.deletePool(pool, false);
  }
}
