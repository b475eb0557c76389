import { afterEach, expect, it, vi } from 'vitest';
import type { Alarms } from '../alarms';
import type { LogSource } from '../logging/log-level.controller';
import type { HealthRegistry } from './health-registry';
import { ReadinessController } from './readiness.controller';

afterEach(() => vi.useRealTimers());

it('runs the checks once for all requests within a second', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  let runs = 0;
  const runReadyChecks = async () => [{ check: 'payloads', passes: true, reason: `run ${(runs += 1)}` }];
  const controller = new ReadinessController(
    { app: 'worker', replicaId: 'one' } as LogSource,
    { runReadyChecks } as unknown as HealthRegistry,
    { list: () => [] } as unknown as Alarms,
  );
  const readReason = async () => (await controller.get({})).checks[0]!.reason;
  expect(await Promise.all([readReason(), readReason()])).toEqual(['run 1', 'run 1']);
  vi.advanceTimersByTime(999);
  expect(await readReason()).toBe('run 1');
  vi.advanceTimersByTime(1);
  expect(await readReason()).toBe('run 2');
});
