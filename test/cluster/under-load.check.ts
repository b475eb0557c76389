import { setTimeout as delay } from 'node:timers/promises';
import { RedisCluster, type RedisHistory, RedisSentinels } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AT_RANDOM } from '../set-back/conditions';
import { type Moment, runSetBack } from '../set-back/set-back-run';
import { SetBackSystem } from '../set-back/set-back-system';
import { examplePrompts } from '../set-back/trainers';
import { createRandom } from '../system/chaos';

const PROMPTS = examplePrompts(24, 4);
const TIMEOUT_MS = 300_000;
/** Time for which a slot is on its way: longer than a connection repeats a call by itself. */
const MOVE_MS = 3_000;
/** Age of the changes that a replica lacks. */
const LOST_MS = 1_000;

/** A disturbance of Redis in the middle of a data set; Redis may lose changes that were not replicated. */
class Disturbance implements RedisHistory {
  happen: (lostMs: number) => Promise<void> = async () => undefined;

  constructor(private readonly redis: RedisCluster | RedisSentinels) {}

  get url(): string {
    return this.redis.url;
  }

  async setBack(lostMs: number): Promise<number> {
    await this.happen(lostMs);
    return lostMs;
  }

  stop(): Promise<void> {
    return this.redis.stop();
  }
}

const atRandom = (trainer: Moment['trainer'], lostMs = 0): Moment => ({
  trainer,
  lostMs,
  moment: AT_RANDOM,
  victim: 'goes on',
});
const at = (moment: string): Moment => ({ trainer: 'reference', lostMs: 0, moment, victim: 'is killed' });

describe('a Cluster in the middle of a data set: each sample is held and counted once', () => {
  let cluster: RedisCluster;
  let disturbance: Disturbance;
  let stand: SetBackSystem;
  let poolKey: string;
  beforeAll(async () => {
    cluster = await RedisCluster.start({ primaries: 3, replicas: 1 });
    disturbance = new Disturbance(cluster);
    stand = await SetBackSystem.start(disturbance, 'same', PROMPTS);
    poolKey = `${stand.system.keyPrefix}:{${stand.system.pool}}`;
  }, TIMEOUT_MS);
  afterAll(() => stand.stop());

  it.each<[string, Moment]>([
    ['with the reference trainer', atRandom('reference')],
    ['with the plain trainer', atRandom('plain')],
    ['while a coordinator that is then killed has completed a request', at('coordinator.complete.before-reply')],
    ['while a worker that is then killed has stored tokens', at('worker.complete.between-payload-and-complete')],
  ])(
    'the primary of the pool fails, %s',
    async (_, moment) => {
      disturbance.happen = async () => cluster.failOver(await cluster.findPrimary(poolKey));
      await runSetBack(stand, moment, PROMPTS, createRandom(1));
    },
    TIMEOUT_MS,
  );

  it(
    'another primary, with payloads and without the pool, fails',
    async () => {
      disturbance.happen = async () => cluster.failOver(await cluster.anotherThan(poolKey));
      await runSetBack(stand, atRandom('reference'), PROMPTS, createRandom(2));
    },
    TIMEOUT_MS,
  );

  it(
    'the primary of the pool hangs',
    async () => {
      disturbance.happen = async () => cluster.failOverHung(await cluster.findPrimary(poolKey));
      await runSetBack(stand, atRandom('reference'), PROMPTS, createRandom(5));
    },
    TIMEOUT_MS,
  );

  const generation = async () => (await stand.system.redis.hash('meta'))['generation'];
  it.each(['reference', 'plain'] as const)(
    'the primary of the pool fails, and its replica lacks the last writes, with the %s trainer',
    async (trainer) => {
      let lostBytes = 0;
      disturbance.happen = async (lostMs) => {
        lostBytes = await cluster.failOverBehind(await cluster.findPrimary(poolKey), lostMs);
      };
      const before = await generation();
      await runSetBack(stand, atRandom(trainer, LOST_MS), PROMPTS, createRandom(6));
      expect(lostBytes).toBeGreaterThan(0);
      expect(await generation()).not.toBe(before);
    },
    TIMEOUT_MS,
  );

  it(
    'the slot of the pool moves to another primary',
    async () => {
      disturbance.happen = async () => {
        const end = await cluster.beginMove(poolKey);
        await delay(MOVE_MS);
        await end();
      };
      await runSetBack(stand, atRandom('reference'), PROMPTS, createRandom(3));
    },
    TIMEOUT_MS,
  );

  it(
    'a primary is added, and the slot of the pool moves to it',
    async () => {
      disturbance.happen = async () => {
        const end = await cluster.beginMove(poolKey, await cluster.addPrimary());
        await delay(MOVE_MS);
        await end();
      };
      await runSetBack(stand, atRandom('reference'), PROMPTS, createRandom(7));
    },
    TIMEOUT_MS,
  );
});

describe('Sentinels in the middle of a data set: each sample is held and counted once', () => {
  let stand: SetBackSystem;
  beforeAll(async () => {
    const sentinels = await RedisSentinels.start();
    const disturbance = new Disturbance(sentinels);
    disturbance.happen = () => sentinels.failOver();
    stand = await SetBackSystem.start(disturbance, 'same', PROMPTS);
  }, TIMEOUT_MS);
  afterAll(() => stand.stop());

  it.each(['reference', 'plain'] as const)(
    'the primary fails, with the %s trainer',
    (trainer) => runSetBack(stand, atRandom(trainer), PROMPTS, createRandom(4)).then(() => undefined),
    TIMEOUT_MS,
  );
});
