import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { JobFrontierReply, PoolName } from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { Metrics, PeriodicTask } from '@broomwagon/platform';
import { PoolDirectory } from '@broomwagon/state';
import { AdminApiConfig } from '../admin-api.config';
import { JobFrontier } from './job-frontier';

/** Pause between two reports, milliseconds. A report reads the events of the last rounds of each job. */
const INTERVAL_MS = 300_000;
/** Maximum jobs of a pool in a report. */
const MAX_JOBS = 8;

/** Measures how fast the steps of jobs with an open round are, compared with the policy `wait`. */
@Injectable()
export class SpeedReports implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly speed;
  private readonly task: PeriodicTask;

  constructor(
    private readonly client: TypedClient,
    private readonly pools: PoolDirectory,
    private readonly frontier: JobFrontier,
    private readonly config: AdminApiConfig,
    metrics: Metrics,
  ) {
    this.speed = metrics.readGauge(
      'speed_against_wait_ratio',
      'Time of a step under `wait` / time of a step of the job, by a replay of its last rounds; read every 5 minutes',
      ['pool', 'training_job'],
      3 * INTERVAL_MS,
    );
    this.task = new PeriodicTask({ name: 'speed', intervalMs: INTERVAL_MS, metrics }, (signal) => this.report(signal));
  }

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.task.stop();
  }

  private async report(signal: AbortSignal): Promise<void> {
    for (const pool of await this.pools.list()) {
      if (signal.aborted) return;
      await this.reportPool(pool);
    }
  }

  private async reportPool(pool: PoolName): Promise<void> {
    const options = { timeoutMs: this.config.callTimeoutMs };
    const { jobs } = await this.client.call(pool, 'job.list', { openOnly: true }, options);
    for (const job of jobs.slice(0, MAX_JOBS)) {
      const speed = computeSpeed(await this.frontier.read(pool, job));
      if (speed !== undefined) this.speed.set({ pool, training_job: job }, speed);
    }
  }
}

/** Time of a step under `wait` / time of a step of the job; undefined while too little is recorded. */
export function computeSpeed({ whatIf }: Pick<JobFrontierReply, 'whatIf'>): number | undefined {
  const own = whatIf.find(({ isOwn }) => isOwn);
  const wait = whatIf.find(({ policy }) => policy === 'wait');
  return own && wait && wait.stepSeconds / own.stepSeconds;
}
