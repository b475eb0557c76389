import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Alarms, Metrics } from '@broomwagon/platform';
import {
  connectRedis,
  openPayloadStore,
  PoolDirectory,
  RoundStore,
  FunctionRunner,
  type PayloadStore,
} from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, describe, it } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import { OrphanSweepService } from './orphan-sweep.service';

const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const dir = mkdtempSync(join(tmpdir(), 'broomwagon-orphans-'));
afterAll(async () => {
  rmSync(dir, { recursive: true });
  await redis.quit();
  await flushPrefix(testRedisUrl(), prefix);
});

/** A coordinator with Redis keys of its own. */
class Deployment {
  private readonly metrics = new Metrics('test');
  private readonly config = Object.assign(new CoordinatorConfig(), { payloadOrphanAfterMs: 0 });
  private readonly service: OrphanSweepService;

  constructor(
    private readonly name: string,
    payloads: PayloadStore,
  ) {
    const keys = `${prefix}-${name}`;
    const rounds = new RoundStore(new FunctionRunner(redis, keys));
    this.service = new OrphanSweepService(
      new PoolDirectory(redis, keys),
      rounds,
      payloads,
      new Alarms(this.metrics),
      this.config,
    );
  }

  /** Adds a pool in Redis, and sweeps. */
  async comesUp(): Promise<this> {
    await new PoolDirectory(redis, `${prefix}-${this.name}`).add('pool');
    // The sweep creates the id of the deployment, and does not use it yet.
    await this.service.sweep();
    return this;
  }

  loses(): Promise<unknown> {
    return flushPrefix(testRedisUrl(), `${prefix}-${this.name}`);
  }

  /** Sweeps, and returns the names of all alarms that this deployment has raised. */
  async sweep(isUnchecked = false): Promise<string[]> {
    this.config.payloadSweepUnchecked = isUnchecked;
    await this.service.sweep();
    return [...(await this.metrics.text()).matchAll(/alarms_total\{alarm="([^"]+)"/g)].map(([, name]) => name!);
  }
}

for (const driver of ['redis', 'file'] as const) {
  describe(`sweep of payloads without an owner, driver ${driver}`, () => {
    let payloads: PayloadStore;
    beforeAll(async () => {
      payloads = await openPayloadStore({ driver, url: testRedisUrl(), dir, keyPrefix: `${prefix}:${driver}` });
    });
    afterAll(() => payloads.close());
    const put = (owner: string) => payloads.put({ pool: 'pool', job: 'job', owner, name: 'prompt' }, Buffer.from('x'));
    const count = () => payloads.countAll();

    it('removes no payload that may belong to another deployment, or to Redis before it was lost', async () => {
      const fresh = new Deployment(`${driver}-a`, payloads);
      expect(await fresh.sweep()).toEqual([]);
      await put('g1');
      expect(await fresh.sweep()).toEqual(['payload-sweep-no-pools']);
      expect(await count()).toBe(1);

      const first = await new Deployment(`${driver}-a`, payloads).comesUp();
      expect(await count()).toBe(1);
      expect(await first.sweep()).toEqual([]);
      expect(await count()).toBe(0);

      const ref = await put('g2');
      const second = await new Deployment(`${driver}-b`, payloads).comesUp();
      expect(await second.sweep()).toEqual(['payload-sweep-shared']);
      expect(await first.sweep()).toEqual(['payload-sweep-shared']);

      // The Redis of this deployment came back empty, and pools have registered since.
      await second.loses();
      await first.loses();
      const third = await new Deployment(`${driver}-a`, payloads).comesUp();
      expect(await third.sweep()).toEqual(['payload-sweep-shared']);
      expect((await payloads.get(ref)).toString()).toBe('x');

      // An operator confirms that no other deployment uses the store.
      await third.sweep(true);
      expect(await count()).toBe(0);
      await put('g3');
      await third.sweep();
      expect(await count()).toBe(0);
    });

    it('can be undone for a day', async () => {
      const ref = await put('g4');
      const one = await new Deployment(`${driver}-c`, payloads).comesUp();
      await one.sweep(true);
      expect(await count()).toBe(0);
      if (driver === 'file') {
        const [day] = readdirSync(join(dir, '.trash'));
        expect(day).toBe(new Date().toISOString().slice(0, 10));
        expect(readdirSync(join(dir, '.trash', day!, 'pool', 'job')).length).toBeGreaterThan(0);
        return;
      }
      const [key] = await redis.keys(`${prefix}:redis:payload:*:item:g4~prompt`);
      const ttlMs = await redis.pttl(key!);
      expect(ttlMs).toBeGreaterThan(23 * 3_600_000);
      expect(ttlMs).toBeLessThanOrEqual(24 * 3_600_000);
      expect((await payloads.get(ref)).toString()).toBe('x');
      await payloads.hold(ref);
      expect(await redis.pttl(key!)).toBe(-1);
      expect([await count(), (await payloads.usage({ pool: 'pool', job: 'job' })).usedBytes]).toEqual([1, 1]);
      await one.sweep();
      expect(await put('g4')).toBe(ref);
      expect(await redis.pttl(key!)).toBe(-1);
    });
  });
}
