import { type BeginWeightsRequest, type WeightSync } from '@broomwagon/contracts';
import { connectRedis } from '@broomwagon/state';
import { attemptNumber, testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../libs/platform/src/failpoint';
import { liveRows, ServiceBench } from './system/service-bench';

let bench: ServiceBench;

beforeAll(async () => {
  bench = await ServiceBench.open();
});
afterAll(() => bench.close());
beforeEach(() => bench.begin());
afterEach(async () => {
  setFailpoints('');
  await bench.client.call(bench.pool, 'request.abort', { abortId: 'end', all: true, waitMs: 5_000 });
  await bench.end();
});

function begin(more: Partial<BeginWeightsRequest> = {}): Promise<WeightSync> {
  const body = { syncId: 'sync', version: 1, mode: 'abort' as const, waitMs: 10_000, ...more };
  return bench.client.call(bench.pool, 'weights.begin', body, { timeoutMs: 20_000 });
}
const commit = () => bench.client.call(bench.pool, 'weights.commit', { syncId: 'sync' });
const states = async () => (await bench.counts()).requests;

describe('a change of weights with a real worker and engine', () => {
  it('stops running requests, and resumes them from their tokens under the new version', async () => {
    await bench.register();
    await bench.submit(2);
    await bench.startWorker();
    await bench.running(4);
    await bench.made(3);
    expect(await begin()).toMatchObject({ state: 'begun', running: 0 });
    // Quiesced requests have stopped on the engine, so the test does not poll here.
    expect(liveRows(await bench.engineState())).toEqual([]);
    await expect.poll(states).toMatchObject({ pending: 4, cutting: 0, claimed: 0, running: 0, dropped: 0 });
    await bench.register({ weightVersion: 1 });
    expect(await commit()).toMatchObject({ state: 'committed', servers: 1, confirmedServers: 1 });
    await bench.running(4);
    await bench.made(10);
    // The second change keeps the segments from before the first, with their old version.
    await begin({ syncId: 'next', version: 2 });
    const { workerEpoch } = await bench.client.call(bench.pool, 'worker.register', {
      workerId: 'x',
      registrationId: 'x',
    });
    await bench.closeWorkers();
    await bench.client.call(bench.pool, 'weights.rollback', { syncId: 'next' });
    const claim = { claimId: 'c', workerId: 'x', workerEpoch, max: 8 };
    await expect.poll(async () => (await states()).pending).toBe(4);
    const { claims } = await bench.client.call(bench.pool, 'request.claim', claim);
    for (const { segments } of claims) {
      expect(segments.map(({ weightVersion }) => weightVersion)).toEqual([0, 1]);
      // A slow machine returns an attempt that has no tokens yet, so that its number has no segment.
      const [first, second] = segments.map(({ attempt }) => attemptNumber(attempt));
      expect(second).toBeGreaterThan(first!);
    }
    await bench.client.call(bench.pool, 'worker.deregister', { workerId: 'x', workerEpoch });
  });

  it('waits for running requests', async () => {
    await bench.register({ maxInflight: 1 });
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(1);
    await expect.poll(async () => (await bench.inflight()).waiters).toBe(1);
    expect(await begin({ mode: 'wait', waitMs: 100 })).toMatchObject({ state: 'begun', running: 1 });
    await expect(commit()).rejects.toMatchObject({ code: 'WEIGHTS_NOT_QUIESCED', retryable: true });
    const [row] = liveRows(await bench.engineState());
    await fetch(`${bench.engine.url}/abort_requests`, {
      method: 'POST',
      body: JSON.stringify({ request_ids: [row!.id] }),
    });
    const status = () => bench.client.call(bench.pool, 'weights.status', { syncId: 'sync', cursor: '0' });
    await expect.poll(async () => (await status()).sync!.running).toBe(0);
    expect((await status()).servers).toMatchObject([{ serverId: 's1', quiesced: true, confirmed: false }]);
    // The other request waits on, and is served as soon as there is a server with the new weights.
    expect((await bench.inflight()).waiters).toBe(1);
    await commit();
    await expect.poll(async () => (await status()).servers).toMatchObject([{ state: 'quarantined' }]);
    await bench.register({ weightVersion: 1, maxInflight: 1 });
    await bench.running(1);
  });

  it('lets requests go on in mode keep', async () => {
    await bench.register();
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(2);
    expect(await begin({ mode: 'keep' })).toMatchObject({ running: 2 });
    // The engine itself stands still while it gets the new weights.
    const isPaused = async () =>
      ((await (await fetch(`${bench.engine.url}/is_paused`)).json()) as { is_paused: boolean }).is_paused;
    const { client, pool } = bench;
    await expect
      .poll(async () => (await client.call(pool, 'weights.status', { cursor: '0' })).servers)
      .toMatchObject([{ paused: true }]);
    expect(await isPaused()).toBe(true);
    await bench.register({ weightVersion: 1 });
    expect(await commit()).toMatchObject({ running: 2, confirmedServers: 1 });
    await expect.poll(isPaused).toBe(false);
    await bench.running(2);
    await bench.made(3);
    const aborted = { abortId: 'look', requestIds: ['job/g0/0'], waitMs: 10_000 };
    const { results } = await bench.client.call(bench.pool, 'request.abort', aborted, { timeoutMs: 20_000 });
    expect(results[0]!.segments).toMatchObject([{ weightVersion: 0, toWeightVersion: 1 }]);
  });

  it('lets an engine go on whose server is removed meanwhile', async () => {
    await bench.register();
    await begin({ mode: 'keep' });
    const isPaused = async () =>
      ((await (await fetch(`${bench.engine.url}/is_paused`)).json()) as { is_paused: boolean }).is_paused;
    await expect.poll(isPaused).toBe(true);
    await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
    await expect.poll(isPaused).toBe(false);
    await bench.client.call(bench.pool, 'weights.rollback', { syncId: 'sync' });
  });

  it('is rolled back when its trainer is lost: engines go on when somebody reports their weights', async () => {
    await bench.register();
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(2);
    setFailpoints('coordinator.weights.after-begin=throw@1');
    await expect(begin({ deadlineMs: 5_000 })).rejects.toMatchObject({ code: 'INTERNAL' });
    await bench.running(0);
    await expect
      .poll(async () => (await bench.client.call(bench.pool, 'weights.status', { syncId: 'sync' })).sync)
      .toMatchObject({ state: 'rolled-back', reason: 'deadline' });
    const { servers } = await bench.client.call(bench.pool, 'weights.status', { cursor: '0' });
    expect(servers).toMatchObject([{ state: 'quarantined', weightsUnknown: true, confirmed: false }]);
    expect(liveRows(await bench.engineState())).toEqual([]);
    await bench.register({ weightVersion: 0 });
    await bench.running(2);
  });

  it('ends a change again, as its caller was told, when Redis has lost the end', async () => {
    await bench.register();
    await bench.submit(1);
    await bench.startWorker();
    await bench.running(2);
    await begin({ deadlineMs: 600_000 });
    await bench.register({ weightVersion: 1 });
    const redis = connectRedis({ url: testRedisUrl() });
    try {
      const toKey = (name: string): string => `${bench.prefix}:{${bench.pool}}:${name}`;
      const keys = ['settings', 'weights:sync'].map(toKey);
      const before = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
      await commit();
      await redis.del(toKey('weights:ended:sync'), toKey('weights'));
      for (const [index, key] of keys.entries()) await redis.restore(key, 0, before[index]!, 'REPLACE');
    } finally {
      redis.disconnect();
    }
    const readSync = async () => (await bench.client.call(bench.pool, 'weights.status', { syncId: 'sync' })).sync;
    await expect.poll(readSync).toMatchObject({ state: 'committed', reason: 'asked' });
    await bench.running(2);
  });

  it('refuses invalid input', async () => {
    const refused = (body: object, field: string) =>
      expect(begin(body)).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field });
    await refused({ mode: 'stop' }, 'mode');
    await refused({ version: -1 }, 'version');
    await refused({ version: 1.5 }, 'version');
    await refused({ deadlineMs: 10 }, 'deadlineMs');
    await refused({ job: 'job' }, 'trainerEpoch');
    await refused({ trainerEpoch: 'e1' }, 'job');
    await bench.register({ weightVersion: 5 });
    await expect(begin({ version: 4 })).rejects.toMatchObject({ code: 'WEIGHT_VERSION_STALE', field: 'version' });
    await begin({ version: 6 });
    await expect(begin({ syncId: 'other', version: 7 })).rejects.toMatchObject({ code: 'WEIGHT_SYNC_CONFLICT' });
    await bench.client.call(bench.pool, 'weights.rollback', { syncId: 'sync' });
  });
});
