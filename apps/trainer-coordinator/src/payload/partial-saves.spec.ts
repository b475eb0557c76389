import type { Claim } from '@broomwagon/contracts';
import { Alarms, Metrics } from '@broomwagon/platform';
import { openPayloadStore, RemovalStore, FunctionRunner } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { expect, it } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorFixture, groups } from '../coordinator.fixture';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { PayloadRemovalService } from './payload-removal.service';

const MINUTE_MS = 60_000;
const SAVE_BYTES = 1_000;
const MAX_BYTES = 5_000;
const SAVES = 20;

class WatchedAlarms extends Alarms {
  on = false;
  override look(...looked: Parameters<Alarms['look']>): void {
    super.look(...looked);
    this.on = looked[2] !== undefined;
  }
}

it('removes replaced partial saves earlier when they reach the bound, and ends the alarm with their removal', async () => {
  // The removals of the coordinator itself do nothing within the test.
  const forever = { payloadDeleteAfterMs: 60 * MINUTE_MS, redisLossWindowMs: 60 * MINUTE_MS };
  const fixture = await CoordinatorFixture.start(1, forever);
  const { pool, redis } = fixture;
  const [keyPrefix] = fixture.rootKey.split(':') as [string];
  const payloads = await openPayloadStore({ driver: 'redis', url: testRedisUrl(), dir: '', keyPrefix });
  const metrics = new Metrics('test');
  const alarms = new WatchedAlarms(metrics);
  const removals = new PayloadRemovalService(
    new RemovalStore(new FunctionRunner(redis, keyPrefix)),
    payloads,
    new CoordinatorMetrics(metrics),
    alarms,
    Object.assign(new CoordinatorConfig(), {
      payloadDeleteAfterMs: 5 * MINUTE_MS,
      redisLossWindowMs: 10_000,
      payloadAwaitingMaxBytes: MAX_BYTES,
    }),
  );
  const { job, round } = await fixture.openRound({ name: 'resume', overProvision: 1 }, 1);
  await fixture.client.call(pool, 'round.submit', { ...round, groups: groups(1, 0, 1) });
  const worker = await fixture.worker('w');
  const [claim] = (await worker.claim(1)) as [Claim];
  let saves = 0;
  const saved: string[] = [];
  const save = async () => {
    const name = `${claim.attempt}-${saves++}`;
    const chunk = { job, requestId: claim.requestId, name, chunkIndex: 0, chunkCount: 1 };
    const data = Buffer.alloc(SAVE_BYTES, 'x').toString('base64');
    const ref = (await fixture.client.call(pool, 'payload.put', { ...chunk, data })).ref!;
    saved.push(ref);
    const segment = { ...fixture.buildSegment(claim, saves), ref };
    await fixture.client.call(pool, 'request.save', { ...worker.fence(claim), serverId: 's1', segment });
  };
  const pass = async (ms: number) => {
    const key = `${fixture.rootKey}:payloads:awaiting`;
    for (const ref of await redis.zrange(key, 0, '-1')) await redis.zincrby(key, -ms, ref);
  };
  const waitingBytes = async () => Number(await redis.hget(`${fixture.rootKey}:meta`, 'awaitingBytes'));
  const there = async () => {
    const stats = await Promise.allSettled(saved.map((ref) => payloads.stat(ref)));
    return stats.filter(({ status }) => status === 'fulfilled').length;
  };

  // All saves are within the loss window: none may be removed, however many there are.
  for (let count = 0; count < SAVES; count++) await save();
  await removals.sweep(pool);
  expect(await waitingBytes()).toBe((SAVES - 1) * SAVE_BYTES);
  expect(await there()).toBe(SAVES);
  expect(alarms.on).toBe(true);
  // Long before the five minutes of their grace.
  await pass(11_000);
  await removals.sweep(pool);
  expect(await waitingBytes()).toBe(MAX_BYTES);
  expect(await there()).toBe(MAX_BYTES / SAVE_BYTES + 1);
  expect(alarms.on).toBe(false);
  // A rate of saves that exceeds the bound in five minutes, and not in the loss window, raises no alarm.
  for (let count = 0; count < SAVES; count++) {
    await save();
    await pass(5_000);
    await removals.sweep(pool);
    expect(await waitingBytes()).toBeLessThanOrEqual(MAX_BYTES);
  }
  expect(await metrics.text()).toMatch(/alarms_total\{alarm="payloads-awaiting-deletion",app="test"\} 1\n/);
  await payloads.stat(saved.at(-1)!);
  await payloads.close();
  await fixture.stop();
});
