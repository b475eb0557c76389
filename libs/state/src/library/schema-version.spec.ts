import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { buildLibrary } from './function-library';
import { PoolStore } from '../pools';
import { WorkerStore } from '../workers/worker.store';
import { FunctionRunner, LUA_ROOT } from './function-runner';
import { ReplicaMarks } from './schema-version';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
let pool: string;
let used = 0;

/** A replica of a release with this schema version. */
const replicas = [1, 2, 3, 4].map((version) => {
  const runner = new FunctionRunner(redis, prefix, undefined, buildLibrary(LUA_ROOT, version));
  return {
    version,
    marks: new ReplicaMarks(redis, prefix, version, `host-${version}`),
    pools: new PoolStore(runner),
    workers: new WorkerStore(runner),
  };
});
const [first, second, third, fourth] = replicas as [Replica, Replica, Replica, Replica];
type Replica = (typeof replicas)[number];

beforeEach(() => {
  pool = `p${used++}`;
});
afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

const use = ({ workers }: Replica, workerId = 'w') =>
  workers.register(pool, { workerId, registrationId: 'r', ttlMs: 60_000 });
const stored = () => redis.hget(`${prefix}:{${pool}}:meta`, 'schemaVersion');

it('the schema version is written by the first replica that uses a pool, and stays', async () => {
  await use(first);
  expect(await stored()).toBe('1');
  await use(first, 'other');
  expect(await stored()).toBe('1');
});

it('the schema version is raised by the next release, while the earlier release works with records of both', async () => {
  const { workerEpoch } = await use(first);
  // A transition that only reads raises the version too: a new replica reads every pool at its start.
  expect(await second.pools.status(pool)).toMatchObject({ workers: 1 });
  expect(await stored()).toBe('2');
  await use(second, 'other');
  expect(await first.workers.heartbeat(pool, { workerId: 'w', workerEpoch })).toMatchObject({ ttlMs: 60_000 });
  expect(await first.pools.status(pool)).toMatchObject({ workers: 2 });
  expect(await stored()).toBe('2');
});

it('a pool is refused by a release that is too old or too new for its schema version, which changes nothing', async () => {
  await use(fourth);
  const keys = async () => (await redis.keys(`${prefix}:{${pool}}:*`)).sort();
  const before = await keys();
  await expect(use(second, 'other')).rejects.toMatchObject({
    code: 'SCHEMA_UNSUPPORTED',
    message: expect.stringContaining('update this replica to a release of schema 3 or 4') as string,
    details: { stored: 4, own: 2 },
  });
  expect(await keys()).toEqual(before);
  await redis.hset(`${prefix}:{${pool}}:meta`, 'schemaVersion', 1);
  for (const { pools } of [third, fourth]) {
    await expect(pools.status(pool)).rejects.toMatchObject({
      code: 'SCHEMA_UNSUPPORTED',
      message: expect.stringContaining('run a release of each schema between') as string,
    });
  }
  expect([await keys(), await stored()]).toEqual([before, '1']);
});

it('the schema version is raised only when no live replica is older than the previous version', async () => {
  await use(second);
  await first.marks.write();
  await expect(third.pools.status(pool)).rejects.toMatchObject({
    code: 'SCHEMA_UNSUPPORTED',
    message: expect.stringContaining('host-1 (schema 1). Update them to a release of schema 2, or stop them') as string,
  });
  expect(await stored()).toBe('2');
  // A replica of the previous version can read records of the new one.
  await second.marks.write();
  await first.marks.remove();
  expect(await third.pools.status(pool)).toMatchObject({ workers: 1 });
  expect(await stored()).toBe('3');
  await second.marks.remove();
});

it('a replica that has not written its mark for a while counts as stopped', async () => {
  await first.marks.write();
  await expect(third.marks.checkOthers()).rejects.toMatchObject({ code: 'SCHEMA_UNSUPPORTED' });
  await redis.zincrby(`${prefix}:replicas`, -200_000, '1|host-1');
  await third.marks.checkOthers();
  await third.marks.write();
  expect(await redis.zrange(`${prefix}:replicas`, '0', '-1')).toEqual(['3|host-3']);
  await third.marks.remove();
});
