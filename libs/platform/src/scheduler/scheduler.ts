import {
  ConfigurableModuleBuilder,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { PoolName } from '@broomwagon/contracts';
import { ServiceConfig } from '../configuration/service.config';
import { Metrics } from '../metrics';
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
 * Runs all methods with `@InEachPool` or `@Periodically`: two runs of one method never overlap, an error (of one pool,
 * when the others are done) is counted and logged and the next run comes as usual, and a stop waits for the runs in
 * progress. All replicas run all of it, so every run must be safe beside others.
 */
@Injectable()
export class Scheduler implements OnApplicationBootstrap, OnModuleDestroy {
  private tasks: PeriodicTask[] = [];
  /** Pools that may have gauges. */
  private shown: readonly PoolName[] = [];

  constructor(
    @Inject(MODULE_OPTIONS_TOKEN) private readonly options: SchedulerOptions,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly config: ServiceConfig,
    private readonly metrics: Metrics,
  ) {}

  /** The pools that the app serves now. @throws BroomwagonError UNAVAILABLE */
  pools(): Promise<readonly PoolName[]> {
    return this.options.pools();
  }

  onApplicationBootstrap(): void {
    this.tasks = this.discovery.getProviders().flatMap((provider) => {
      const { instance } = provider as { instance?: object };
      if (typeof instance !== 'object' || instance === null) return [];
      return this.scanner.getAllMethodNames(Object.getPrototypeOf(instance) as object).flatMap((method) => {
        const schedule = this.discovery.getMetadataByDecorator(Scheduled, provider, method);
        return schedule === undefined ? [] : this.buildTasks(schedule, (instance as Methods)[method]!.bind(instance));
      });
    });
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

  private buildTasks({ name, interval, inEachPool, isImmediate }: Schedule, work: Methods[string]): PeriodicTask[] {
    const intervalMs = typeof interval === 'number' ? interval : interval(this.config);
    if (intervalMs === undefined) return [];
    const run = inEachPool ? (signal: AbortSignal) => this.inEachPool(work, signal) : work;
    return [new PeriodicTask({ name, intervalMs, isImmediate, metrics: this.metrics }, run)];
  }

  /** All pools, also when one fails; then the first error is thrown at the end. */
  private async inEachPool(work: (pool: PoolName) => Promise<unknown>, signal: AbortSignal): Promise<void> {
    const errors: unknown[] = [];
    for (const pool of await this.pools()) {
      if (signal.aborted) return;
      await work(pool).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }
}

type Methods = Record<string, (argument: PoolName | AbortSignal) => Promise<unknown>>;
