import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';

/** Acquires a second; the load at which callers of a hung replica collapsed: HUNG_RATE=2000. */
const RATE = Number(process.env.HUNG_RATE ?? 100);
const SECONDS = Number(process.env.HUNG_SECONDS ?? 3);
const LATEST_MS = 10_000;

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ balancers: 2, coordinators: 0, workers: 0, engines: 1 });
  await system.call('server.update', { serverId: 'engine-0', maxInflight: 65_536 });
});
afterAll(() => system?.stop());

it('one of two replicas stopped: each call is answered within its timeout, and nothing leaks', async () => {
  const worker = { workerId: 'w', registrationId: 'once', ttlMs: 120_000 };
  const { workerEpoch } = await system.call('worker.register', worker);
  const victim = system.process('load-balancer-1');
  const latenciesMs: number[] = [];
  const call = async (index: number): Promise<void> => {
    const acquireId = `a${index}`;
    const startedMs = performance.now();
    const item = { acquireId, requestId: 'job/g/0', workerId: 'w', workerEpoch };
    const { leaseId } = await system.client.call(system.pool, 'lb.acquire', item, { timeoutMs: LATEST_MS });
    latenciesMs.push(performance.now() - startedMs);
    await system.client.call(system.pool, 'lb.release', { leaseId, outcome: 'finished' }, { timeoutMs: LATEST_MS });
  };
  const calls: Promise<void>[] = [];
  victim.kill('SIGSTOP');
  try {
    const startedMs = performance.now();
    for (let sent = 0; sent < RATE * SECONDS;) {
      const due = Math.min(RATE * SECONDS, ((performance.now() - startedMs) / 1_000) * RATE);
      while (sent < due) calls.push(call(sent++));
      await delay(5);
    }
    // The callers of these requests give up before the replica goes on.
    const stale = Array.from({ length: 20 }, () =>
      system.client.call(system.pool, 'lb.status', {}, { timeoutMs: 600 }).catch(() => undefined),
    );
    await Promise.all(calls);
    await Promise.all(stale);
  } finally {
    victim.kill('SIGCONT');
  }
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number) => Math.round(latenciesMs[Math.ceil(latenciesMs.length * share) - 1]!);
  if (process.env.HUNG_RATE)
    console.log(`acquires at ${RATE}/s: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`);
  expect(latenciesMs).toHaveLength(RATE * SECONDS);
  const dropped = async () => {
    const page = await system.metrics('load-balancer-1');
    return page.split('\n').filter((line) => line.includes('messages_handled_total') && line.includes('"TIMEOUT"'))
      .length;
  };
  await expect.poll(dropped).toBeGreaterThan(0);
  await expect.poll(() => system.call('lb.status', {})).toMatchObject({ leases: 0, waiters: 0 });
});
