import { startRedis, type ServerHandle } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { RedisPayloadStore } from './payload/redis-payload-store';
import { connectRedis } from './redis';
import { RedisMemory } from './redis-memory';
import { TestPools } from './rounds/test-pools.fixture';

let server: ServerHandle;
let test: TestPools;
/** Size of a value written by SETRANGE. The buffer of a SET of this size would count as used memory for a while. */
const FILLER_BYTES = 8_000_000;

beforeAll(async () => {
  server = await startRedis();
  test = new TestPools(server.url);
}, 60_000);
beforeEach(async () => {
  await test.redis.config('SET', 'maxmemory', 0);
  await test.memory.look();
  await test.fresh();
});
afterAll(async () => {
  await test.close();
  await server.stop();
});

/** Fills Redis with other data, and sets `maxmemory` so that this share of it is used. */
async function fill(share: number): Promise<void> {
  await test.redis.config('SET', 'maxmemory', 0);
  await test.redis.setrange('filler', FILLER_BYTES - 1, 'x');
  const { usedBytes } = await new RedisMemory(test.redis).look();
  await test.redis.config('SET', 'maxmemory', Math.floor(usedBytes / share));
  await test.memory.look();
}

const WAIT = { name: 'wait', overProvision: 1, shortfall: 'accept-fewer' } as const;
const STORE_FULL = { code: 'STORE_FULL', retryable: true, retryAfterMs: 1_000 };

it('ends work and frees memory when Redis is at its maxmemory, and takes new work in again afterwards', async () => {
  await test.servers.register(test.pool, {
    serverId: 's1',
    instanceId: 'i1',
    endpoint: 'http://s1',
    dialect: 'vllm',
    probe: false,
    maxInflight: 8,
    weight: 1,
    weightVersion: 1,
  });
  const acquire = (acquireId: string) =>
    test.leases.acquire(test.pool, [{ acquireId, requestId: 'job/g0/0', ...test.holder }]);
  const { results } = await acquire('a1');
  const round = await test.open({ policy: WAIT, neededGroups: 3, samples: 1 });
  const [first, second] = await test.claim(2);

  // Redis is far over its limit, and refuses new work itself before the gate of this process has checked the memory.
  await test.redis.setrange('filler', FILLER_BYTES - 1, 'x');
  await test.redis.config('SET', 'maxmemory', FILLER_BYTES);
  for (const looked of [false, true]) {
    if (looked) await test.memory.look();
    await expect(test.claim()).rejects.toMatchObject(STORE_FULL);
    await expect(acquire('a2')).rejects.toMatchObject(STORE_FULL);
    await expect(test.open({ policy: WAIT, neededGroups: 1, job: 'other' })).rejects.toMatchObject(STORE_FULL);
  }

  const { workerId, workerEpoch } = test.holder;
  await test.workers.heartbeat(test.pool, { workerId, workerEpoch });
  await test.leases.release(test.pool, [{ acquireId: 'a1', seq: (results[0] as { seq: number }).seq }]);
  expect(await test.pools.status(test.pool)).toMatchObject({ leases: 0, workers: 1 });
  await test.save(first!, 1);
  expect(await test.complete(first!)).toMatchObject({ state: 'finished' });
  expect(await test.fail(second!)).toMatchObject({ state: 'pending' });
  expect(await test.rounds.status(test.pool, { job: 'job' })).toMatchObject({ acceptedGroups: 1 });
  await test.rounds.cancel(test.pool, { ...round, mode: 'drop', reason: 'test' });
  for (let more = true; more;) ({ more } = await test.rounds.giveBack(test.pool, round));
  await test.rounds.cut(test.pool, { ...round, cursor: 0 });
  for await (const _ of test.rounds.whileMore('fold', test.pool, round));
  expect(await test.states()).toMatchObject({ dropped: 3, pending: 0, claimed: 0 });

  await test.redis.del('filler');
  await test.memory.look();
  await test.open({ policy: WAIT, neededGroups: 1, roundId: 'r2', trainerEpoch: round.trainerEpoch });
  expect(await test.claim()).toHaveLength(2);
});

it('takes no new work in from 90 % of maxmemory on, and takes it again below 87 %', async () => {
  await fill(0.89);
  await test.open({ policy: WAIT, neededGroups: 1 });
  await fill(0.91);
  await expect(test.claim()).rejects.toMatchObject(STORE_FULL);
  expect(test.memory.refusal()?.message).toMatch(/uses 9\d % of its maxmemory \(\d+ of \d+ bytes\)/);
  await fill(0.88);
  await expect(test.claim()).rejects.toMatchObject(STORE_FULL);
  await fill(0.86);
  expect(await test.claim()).toHaveLength(2);
});

it('stores no payload above its share of maxmemory, whatever the quota, and reports the room left', async () => {
  const memory = new RedisMemory(test.redis, 'Redis', undefined, 0.75);
  const store = new RedisPayloadStore(connectRedis({ url: server.url }), 'payloads', 100_000_000, memory);
  const put = () => store.put({ pool: 'p', job: 'j', owner: 'o', name: '1' }, Buffer.alloc(1_000));
  await fill(0.7);
  await memory.look();
  await put();
  const { usedBytes, quotaBytes } = await store.usage({ pool: 'p', job: 'j' });
  expect(usedBytes).toBe(1_000);
  expect(quotaBytes).toBeLessThan(FILLER_BYTES);
  await fill(0.8);
  await memory.look();
  await expect(put()).rejects.toMatchObject({ code: 'PAYLOAD_STORE_FULL', retryable: true });
  // Other new work goes on.
  await test.open({ policy: WAIT, neededGroups: 1 });
  expect(await test.claim()).toHaveLength(2);
  // Redis is full, which the gate does not know yet, so Redis itself refuses.
  await fill(0.7);
  await memory.look();
  await test.redis.config('SET', 'maxmemory', FILLER_BYTES);
  await expect(put()).rejects.toMatchObject({ code: 'PAYLOAD_STORE_FULL' });
  await store.removeAll({ pool: 'p', job: 'j' });
  await store.close();
});
