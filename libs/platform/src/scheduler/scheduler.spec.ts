import { Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { BroomwagonError } from '@broomwagon/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceConfig } from '../configuration/service.config';
import { Metrics } from '../metrics';
import { InEachPool, Periodically } from './periodic.decorators';
import { Scheduler } from './scheduler';
import { SchedulerModule } from './scheduler.module';

class Config extends ServiceConfig {
  sweepIntervalMs = 1;
}

@Injectable()
class Work {
  readonly swept = new Map<string, number>();
  running = 0;
  mostRunning = 0;
  wasStopped = false;
  /** Holds a run up. */
  gate = Promise.resolve();

  @InEachPool('sweep', (config: Config) => config.sweepIntervalMs)
  async sweep(pool: string): Promise<void> {
    this.mostRunning = Math.max(this.mostRunning, ++this.running);
    await this.gate;
    this.running--;
    this.swept.set(pool, (this.swept.get(pool) ?? 0) + 1);
    if (pool === 'broken') throw new BroomwagonError('INTERNAL', 'this pool cannot be swept');
  }

  @Periodically('wait', 1, { isImmediate: true })
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => signal.addEventListener('abort', () => ((this.wasStopped = true), resolve())));
  }

  @Periodically('off', () => undefined, { isImmediate: true })
  async off(): Promise<void> {
    this.swept.set('off', 1);
  }
}

describe('Scheduler', () => {
  let pools: string[];
  let work: Work;
  let scheduler: Scheduler;
  let metrics: Metrics;
  let close: () => Promise<void>;

  beforeEach(async () => {
    pools = ['broken', 'sound'];
    metrics = new Metrics('test');
    const app = await Test.createTestingModule({
      imports: [
        {
          module: class Platform {},
          global: true,
          providers: [
            { provide: ServiceConfig, useValue: new Config() },
            { provide: Metrics, useValue: metrics },
          ],
          exports: [ServiceConfig, Metrics],
        },
        SchedulerModule.forRoot({ pools: async () => pools }),
      ],
      providers: [Work],
    }).compile();
    Logger.overrideLogger(false);
    work = app.get(Work);
    scheduler = app.get(Scheduler);
    await app.init();
    close = () => app.close();
  });
  afterEach(() => close());

  it('runs work in each pool, one run at a time, also behind a pool that fails, which it counts', async () => {
    await expect.poll(() => work.swept.get('sound') ?? 0).toBeGreaterThan(3);
    expect(work.swept.get('broken')).toBeGreaterThan(3);
    expect(work.mostRunning).toBe(1);
    expect(await metrics.text()).toMatch(/task_failures_total\{task="sweep",app="test"\} \d+/);
    pools = ['sound'];
    const before = work.swept.get('sound')!;
    await expect.poll(() => work.swept.get('sound')!).toBeGreaterThan(before + 3);
  });

  it('never runs work without an interval, and waits at a stop for the run in hand but begins no further pool', async () => {
    await expect.poll(() => work.swept.size).toBe(2);
    let open = (): void => undefined;
    work.gate = new Promise((resolve) => (open = resolve));
    await expect.poll(() => work.running).toBe(1);
    const sum = (): number => work.swept.get('broken')! + work.swept.get('sound')!;
    const before = sum();
    let isClosed = false;
    const closing = close().then(() => (isClosed = true));
    await expect.poll(() => work.wasStopped).toBe(true);
    expect(isClosed).toBe(false);
    open();
    await closing;
    expect(sum()).toBe(before + 1);
    expect(work.running).toBe(0);
    expect(work.swept.has('off')).toBe(false);
    close = () => Promise.resolve();
  });

  it('removes the gauges of a pool that is no longer served', async () => {
    const gauge = metrics.gauge('leases', 'Live leases', ['pool']);
    for (const pool of pools) gauge.set({ pool }, 1);
    await scheduler.forgetPools();
    pools = ['sound'];
    await scheduler.forgetPools();
    expect((await gauge.get()).values.map(({ labels }) => labels.pool)).toEqual(['sound']);
  });
});
