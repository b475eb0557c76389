import { afterEach, expect, it, vi } from 'vitest';
import { Metrics } from './metrics';

afterEach(() => void vi.useRealTimers());

it('a gauge that is read periodically loses a value that was not read for some time, and keeps others', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const metrics = new Metrics('app');
  const gauge = metrics.readGauge('leases', 'Live leases', ['pool'], 30_000);
  gauge.set({ pool: 'gone' }, 3);
  vi.advanceTimersByTime(20_000);
  gauge.set({ pool: 'read' }, 4);
  expect(await metrics.text()).toContain('leases{pool="gone",app="app"} 3');
  vi.advanceTimersByTime(10_001);
  const text = await metrics.text();
  expect(text).not.toContain('gone');
  expect(text).toContain('leases{pool="read",app="app"} 4');
  gauge.set({ pool: 'gone' }, 5);
  expect(await metrics.text()).toContain('leases{pool="gone",app="app"} 5');
});

it('all series of a process that serves one pool have the pool as label', async () => {
  const metrics = new Metrics('worker', 'p');
  metrics.counter('tokens_total', 'Tokens').inc(2);
  expect(await metrics.text()).toContain('tokens_total{app="worker",pool="p"} 2');
});
