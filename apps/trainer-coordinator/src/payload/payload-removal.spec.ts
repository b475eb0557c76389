import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { Alarms, Metrics } from '@broomwagon/platform';
import { connectRedis, RemovalStore, openPayloadStore, FunctionRunner, type PayloadStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { setFailpoints } from '../../../../libs/platform/src/failpoint';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { PayloadRemovalService } from './payload-removal.service';

const MINUTE_MS = 60_000;
const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const dir = mkdtempSync(join(tmpdir(), 'broomwagon-removals-'));
let pools = 0;
let pool: string;
afterAll(async () => {
  rmSync(dir, { recursive: true });
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});
beforeEach(() => {
  pool = `pool-${pools++}`;
});
afterEach(() => setFailpoints(''));

const runner = new FunctionRunner(redis, prefix);
const key = (name: string) => `${runner.rootKey(pool)}:${name}`;
const metrics = new Metrics('test');
const config = Object.assign(new CoordinatorConfig(), {
  redisLossWindowMs: 10_000,
  payloadDeleteAfterMs: 5 * MINUTE_MS,
  payloadAwaitingMaxBytes: 1_000,
});

/** Frees payloads like a transition. */
const free = async (...refs: string[]) => {
  for (const ref of refs) await redis.zadd(key('payloads:freed'), 'NX', Date.now(), ref);
};
const pass = async (ms: number) => {
  for (const ref of await redis.zrange(key('payloads:awaiting'), 0, '-1')) {
    await redis.zincrby(key('payloads:awaiting'), -ms, ref);
  }
};

for (const driver of ['redis', 'file'] as const) {
  describe(`removal of freed payloads, driver ${driver}`, () => {
    let payloads: PayloadStore;
    beforeAll(async () => {
      payloads = await openPayloadStore({ driver, url: testRedisUrl(), dir, keyPrefix: `${prefix}:${driver}` });
    });
    afterAll(() => payloads.close());
    const removals = new RemovalStore(runner);
    const replica = (own = metrics) =>
      new PayloadRemovalService(removals, payloads, new CoordinatorMetrics(own), new Alarms(own), config);
    const put = (name: string, bytes = 100) =>
      payloads.put({ pool, job: 'job', owner: 'job/g/0', name }, Buffer.alloc(bytes, 'x'));
    const readPresence = async (refs: string[], store: PayloadStore = payloads) => {
      const stats = refs.map((ref) =>
        store.stat(ref).then(
          () => true,
          (error: unknown) => {
            if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) return false;
            throw error;
          },
        ),
      );
      return Promise.all(stats);
    };

    it('removes freed payloads after the grace, and not before', async () => {
      const refs = [await put('1'), await put('2')];
      const kept = await put('3');
      await free(refs[0]!, refs[1]!, 'redis~nobody', 'a reference of no store', `${driver}~${pool}~job~g~never`);
      await replica().sweep(pool);
      expect(await redis.hlen(key('payloads:awaiting:bytes'))).toBe(2);
      await pass(4 * MINUTE_MS);
      await replica().sweep(pool);
      expect(await readPresence(refs)).toEqual([true, true]);
      await pass(2 * MINUTE_MS);
      // A replica that dies in between is replaced by another one.
      setFailpoints('coordinator.removal.between-remove-and-removed=throw@1');
      await expect(replica().sweep(pool)).rejects.toThrow();
      await Promise.all([replica().sweep(pool), replica().sweep(pool)]);
      expect(await readPresence([...refs, kept])).toEqual([false, false, true]);
      expect(await redis.keys(key('payloads:*'))).toEqual([]);
      expect(await redis.hget(key('meta'), 'awaitingBytes')).toBe('0');
    });

    it('removes nothing for the loss window after Redis was restarted: it may be an old primary', async () => {
      const refs = [await put('1')];
      await free(...refs);
      await replica().sweep(pool);
      await pass(6 * MINUTE_MS);
      await redis.hset(key('meta'), 'generationOf', 'another process');
      await replica().sweep(pool);
      expect(await readPresence(refs)).toEqual([true]);
      await redis.hincrby(key('meta'), 'generationSinceMs', -config.redisLossWindowMs);
      await replica().sweep(pool);
      expect(await readPresence(refs)).toEqual([false]);
    });

    it('shortens the grace to the loss window when too many bytes wait, and raises an alarm', async () => {
      const refs = await Promise.all(['1', '2', '3'].map((name) => put(name, 500)));
      await free(...refs);
      const one = replica();
      await one.sweep(pool);
      await one.sweep(pool);
      expect(await readPresence(refs)).toEqual([true, true, true]);
      expect(await metrics.text()).toContain(`payloads_awaiting_deletion_bytes{pool="${pool}",app="test"} 1500`);
      expect(await metrics.text()).toMatch(/alarms_total\{alarm="payloads-awaiting-deletion",app="test"\} \d/);
      await pass(11_000);
      await one.sweep(pool);
      // Only the excess payload is removed.
      expect((await readPresence(refs)).filter(Boolean)).toHaveLength(2);
    });

    it('continues after a payload that the store fails to remove, counts it, and raises an alarm', async () => {
      const [bad, ...good] = [await put('1'), await put('2'), await put('3')] as [string, ...string[]];
      await free(bad, ...good);
      const own = new Metrics('test');
      const one = replica(own);
      const awaiting = async () => {
        const found = (await own.text()).matchAll(/awaiting_deletion(?:_bytes)?\{.*\} (\d+)/g);
        return [...found].map(([, value]) => Number(value));
      };
      const before = { ...config };
      Object.assign(config, { payloadDeleteAfterMs: 0, redisLossWindowMs: 0 });
      for (const [name, bytes] of [
        ['free', 0],
        ['remove', 100],
      ] as const) {
        const whole = payloads[name].bind(payloads) as (refs: readonly string[]) => Promise<never>;
        const spy = vi.spyOn(payloads, name).mockImplementation(async (refs: readonly string[]) => {
          if (refs.includes(bad)) throw new Error('EIO');
          return whole(refs);
        });
        await expect(one.sweep(pool)).rejects.toThrow('EIO');
        spy.mockRestore();
        expect(await readPresence([bad, ...good])).toEqual([true, false, false]);
        expect(await awaiting()).toEqual([1, bytes]);
      }
      expect(await own.text()).toContain('alarms_total{alarm="payloads-not-removed",app="test"} 1');
      await one.sweep(pool);
      Object.assign(config, before);
      expect(await awaiting()).toEqual([0, 0]);
      expect(await readPresence([bad])).toEqual([false]);
    });

    it.each(['nowMs', 'free'] as const)('shows waiting payloads when the store is unavailable to %s', async (name) => {
      await free(await put('1'), await put('2'));
      const asked = vi.spyOn(payloads, name).mockRejectedValue(new BroomwagonError('UNAVAILABLE', 'away'));
      await expect(replica().sweep(pool)).rejects.toThrow('away');
      expect(asked).toHaveBeenCalledTimes(1);
      asked.mockRestore();
      expect(await metrics.text()).toContain(`payloads_awaiting_deletion{pool="${pool}",app="test"} 2`);
    });

    it('removes payloads without bytes', async () => {
      const ref = await put('1', 0);
      await free(ref);
      await replica().sweep(pool);
      await pass(6 * MINUTE_MS);
      await replica().sweep(pool);
      expect(await readPresence([ref])).toEqual([false]);
      expect(await redis.keys(key('payloads:*'))).toEqual([]);
    });

    it('keeps a payload to which a Redis that was set back refers again, and removes it when it is freed again', async () => {
      const ref = await put('1');
      const before = new Map<string, Buffer>();
      for (const name of await redis.keys(`${runner.rootKey(pool)}:*`))
        before.set(name, (await redis.dumpBuffer(name))!);
      await free(ref);
      await replica().sweep(pool);
      // Redis loses the freeing with its queue.
      const now = await redis.keys(`${runner.rootKey(pool)}:*`);
      if (now.length > 0) await redis.unlink(now);
      for (const [name, dump] of before) await redis.restore(name, 0, dump);
      await replica().sweep(pool);
      expect(await readPresence([ref])).toEqual([true]);
      await free(ref);
      await replica().sweep(pool);
      await pass(6 * MINUTE_MS);
      await replica().sweep(pool);
      expect(await readPresence([ref])).toEqual([false]);
    });

    it('keeps a payload that was stored again under the same name', async () => {
      const ref = await put('1');
      await free(ref);
      await replica().sweep(pool);
      await pass(6 * MINUTE_MS);
      const cutoffMs = (await payloads.nowMs()) - 1;
      expect((await removals.look(pool, { deleteAfterMs: 1, lossWindowMs: 1, maxBytes: 1 })).due).toEqual([ref]);
      // A replica has stalled with its page while others continued.
      await replica().sweep(pool);
      await put('1');
      expect(await payloads.remove([ref], cutoffMs)).toBe(0);
      expect(await readPresence([ref])).toEqual([true]);
    });
  });
}
