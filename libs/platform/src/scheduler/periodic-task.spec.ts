import { Logger } from '@nestjs/common';
import { BroomwagonError, outages } from '@broomwagon/contracts';
import { beforeEach, describe, expect, it } from 'vitest';
import { Metrics } from '../metrics';
import { PeriodicTask } from './periodic-task';

Logger.overrideLogger(false);

describe('PeriodicTask', () => {
  // Other files of this process leave outages, which would explain the errors of these tests.
  beforeEach(() => outages.clear());

  it('never overlaps, continues after errors and counts them, and waits for the last run when stopped', async () => {
    let running = 0;
    let runs = 0;
    let overlapped = false;
    const metrics = new Metrics('test');
    const task = new PeriodicTask({ name: 'sweep', intervalMs: 2, isImmediate: true, metrics }, async () => {
      overlapped ||= running > 0;
      running++;
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      runs++;
      if (runs % 2 === 0) throw new Error('every other');
    });
    task.start();
    task.start();
    await expect.poll(() => runs).toBeGreaterThan(4);
    await expect.poll(() => running).toBe(1);
    await task.stop();
    expect(running).toBe(0);
    const after = runs;
    task.start();
    expect(overlapped).toBe(false);
    expect(await metrics.text()).toMatch(/broomwagon_task_failures_total\{task="sweep",app="test"\} ([2-9]|\d\d)/);
    expect(runs).toBe(after);
  });

  it('logs once that a store is unavailable, however often it asks, and that it runs again', async () => {
    const said: string[] = [];
    const take =
      (level: string) =>
      (...parts: unknown[]) =>
        void said.push(`${level}: ${String(parts.find((part) => typeof part === 'string'))}`);
    Logger.overrideLogger({ log: take('log'), warn: take('warn'), error: take('error') });
    let runs = 0;
    const task = new PeriodicTask(
      { name: 'sweep', intervalMs: 1, isImmediate: true, metrics: new Metrics('test') },
      async () => {
        if (++runs <= 5) throw new BroomwagonError('UNAVAILABLE', 'Redis does not answer');
      },
    );
    task.start();
    await expect.poll(() => runs).toBeGreaterThan(7);
    await task.stop();
    Logger.overrideLogger(false);
    expect(said).toEqual([
      'warn: The run failed; the next run is on schedule',
      expect.stringMatching(/^log: The task runs again after 5 failed runs in \d+ ms$/),
    ]);
  });

  it('aborts the signal of a run when it is stopped', async () => {
    let aborted = false;
    let began = false;
    const task = new PeriodicTask({ name: 'wait', intervalMs: 1, metrics: new Metrics('test') }, (signal) => {
      began = true;
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => ((aborted = true), resolve())));
    });
    task.start();
    await expect.poll(() => began).toBe(true);
    await task.stop();
    expect(aborted).toBe(true);
  });
});
