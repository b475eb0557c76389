import { afterAll, expect, it } from 'vitest';
import { RequestStore } from '../requests/request.store';
import { openTestStore } from '../routing/routing-store.fixture';
import { PoolDirectory } from './pool-directory';

const test = openTestStore();
const [prefix] = test.root.split(':') as [string];
const directory = new PoolDirectory(test.redis, prefix);
afterAll(() => test.close());

it('lets a pool without periodic work fall asleep, and wakes it with its next call or review', async () => {
  const { pool } = test;
  const nowMs = Date.now();
  await directory.add(pool);
  const { workerId, workerEpoch } = await test.worker('w');
  await directory.review(nowMs);
  await directory.review(nowMs + 60_000);
  expect(await directory.awake()).toEqual([pool]);
  expect(await directory.readActivity(pool)).toMatchObject({
    awake: true,
    inUse: ['live workers'],
    servers: 0,
    jobs: 0,
  });

  await test.workers.deregister(pool, { workerId, workerEpoch });
  await test.sweep();
  await new RequestStore(test.runner).expiredAttempts(pool);
  await directory.review(nowMs + 60_000);
  await directory.review(nowMs + 69_000);
  expect(await directory.awake()).toEqual([pool]);
  await directory.review(nowMs + 71_000);
  expect(await directory.awake()).toEqual([]);
  expect(await directory.list()).toEqual([pool]);
  expect(await directory.asleep()).toEqual([pool]);
  // No periodic task visits it, unless a replica is configured for it.
  expect(await directory.served('*')).toEqual([]);
  expect(await directory.served([pool])).toEqual([pool]);

  // The process has entered the pool before, and knows that it is asleep now.
  await directory.add(pool);
  expect(await directory.awake()).toEqual([pool]);
  await directory.review(nowMs + 80_000);
  await directory.review(nowMs + 95_000);
  expect(await directory.awake()).toEqual([]);
  // A server that registers without a call through the directory is found by a review.
  await test.server('s1');
  await directory.reviewAsleep();
  expect(await directory.awake()).toEqual([pool]);
  await test.servers.remove(pool, { serverId: 's1' });
  await test.sweep();

  // A loading engine is probed until it answers, but keeps no pool awake after an hour without an answer.
  const isAwake = async () => (await directory.readActivity(pool)).awake;
  expect(await isAwake()).toBe(false);
  await test.server('s2', 1, { probe: undefined });
  expect(await isAwake()).toBe(true);
  await test.redis.zadd(`${test.root}:servers:pending`, Date.now() - 3_601_000, 's2');
  expect(await isAwake()).toBe(false);
});
