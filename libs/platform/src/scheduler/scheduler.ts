import {
  ConfigurableModuleBuilder,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { ServiceConfig } from '../configuration/service.config';
import { Metrics } from '../metrics';
import { MethodFinder } from './method-finder';
import { PeriodicTask } from './periodic-task';
import { Periodically, Scheduled, type Schedule } from './periodic.decorators';

export interface SchedulerOptions {
  /** Lists the pools that the app serves now. */
  pools: () => Promise<readonly PoolName[]>;
}

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<SchedulerOptions>()
  .setClassMethodName('forRoot')
  .build();

const FORGET_INTERVAL_MS = 5_000;

/**
 * Runs all methods with `@InEachPool` or `@Periodically`, as {@link PeriodicTask} does. An error in one pool does not
 * stop the run in other pools. All replicas run all methods, so every run must be safe while other replicas run the
 * same.
 */
@Injectable()
export class Scheduler implements OnApplicationBootstrap, OnModuleDestroy {
  private tasks: PeriodicTask[] = [];
  /** Pools at the last run of `forgetPools`, which may have gauges. */
  private shown: readonly PoolName[] = [];

  constructor(
    @Inject(MODULE_OPTIONS_TOKEN) private readonly options: SchedulerOptions,
    private readonly methods: MethodFinder,
    private readonly config: ServiceConfig,
    private readonly metrics: Metrics,
  ) {}

  /** Returns the pools that the app serves now. @throws BroomwagonError UNAVAILABLE */
  pools(): Promise<readonly PoolName[]> {
    return this.options.pools();
  }

  onApplicationBootstrap(): void {
    const found = this.methods.find<Schedule, Work>(Scheduled);
    this.tasks = found.flatMap(({ options, run }) => this.buildTasks(options, run));
    for (const task of this.tasks) task.start();
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.stop()));
  }

  /** Removes the gauges of pools that are no longer served. */
  @Periodically('forget-pools', FORGET_INTERVAL_MS)
  async forgetPools(): Promise<void> {
    const pools = await this.pools();
    for (const pool of this.shown) if (!pools.includes(pool)) await this.metrics.forget('pool', pool);
    this.shown = pools;
  }

  private buildTasks({ name, interval, inEachPool, isImmediate }: Schedule, work: Work): PeriodicTask[] {
    const intervalMs = typeof interval === 'number' ? interval : interval(this.config);
    if (intervalMs === undefined) return [];
    const run = inEachPool ? (signal: AbortSignal) => this.inEachPool(work, signal) : work;
    return [new PeriodicTask({ name, intervalMs, isImmediate, metrics: this.metrics }, run)];
  }

  /** Runs work in all pools, also after an error. @throws the first error, at the end */
  private async inEachPool(work: (pool: PoolName) => Promise<unknown>, signal: AbortSignal): Promise<void> {
    const pools = await this.pools();
    await attemptAll(pools.map((pool) => async () => void (signal.aborted || (await work(pool)))));
  }
}

type Work = (argument: PoolName | AbortSignal) => Promise<unknown>;

/** Runs all works one after the other, also after an error. @throws the first error, at the end */
export async function attemptAll(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const work of works) await work().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}
