import { RedisCluster, testPool } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysBelow } from './audit/key-scan';
import { PoolStore } from './pools';
import { ServerStore } from './servers/server.store';
import { WorkerStore } from './workers/worker.store';
import { FunctionRunner, theLibrary } from './library/function-runner';
import { LIBRARIES_KEY, LibraryUpkeep } from './library/library-upkeep';
import { connectRedis } from './redis';
import { checkRedisAccess } from './redis-access';
import { listPrimaries, type RedisClient } from './redis-cluster';
import { RedisMemory } from './redis-memory';
import { PoolDirectory } from './pools';

const PRIMARIES = 3;
const POOLS = Array.from({ length: 12 }, (_, index) => `pool-${index}`);

describe('a Redis Cluster', () => {
  const { pool: prefix } = testPool();
  let cluster: RedisCluster;
  let redis: RedisClient;
  let runner: FunctionRunner;
  let servers: ServerStore;
  let workers: WorkerStore;
  let pools: PoolStore;
  const readLibraries = () =>
    Promise.all(listPrimaries(redis).map(async (primary) => JSON.stringify(await primary.function('LIST'))));
  const registered = async (pool: string) => (await servers.list(pool)).servers.map(({ serverId }) => serverId);

  beforeAll(async () => {
    cluster = await RedisCluster.start({ primaries: PRIMARIES, replicas: 0 });
    redis = connectRedis({ url: cluster.url });
    runner = new FunctionRunner(redis, prefix);
    servers = new ServerStore(runner);
    workers = new WorkerStore(runner);
    pools = new PoolStore(runner);
    await checkRedisAccess(redis, prefix);
    const server = { serverId: 's', endpoint: 'http://127.0.0.1:1', dialect: 'vllm' as const, instanceId: 'i' };
    for (const pool of POOLS) {
      await servers.register(pool, { ...server, maxInflight: 1, weight: 1, weightVersion: 0, model: 'm' });
    }
  });
  afterAll(async () => {
    await redis.quit();
    await cluster.stop();
  });

  it('has pools on every primary, and all keys of a pool on one primary', async () => {
    const owners = await Promise.all(POOLS.map((pool) => cluster.findPrimary(runner.rootKey(pool))));
    expect(new Set(owners).size).toBe(PRIMARIES);
    const found = [];
    for await (const keys of keysBelow(redis, `${runner.rootKey(POOLS[0]!)}:`)) found.push(...keys);
    expect(found).toContain(`${runner.rootKey(POOLS[0]!)}:servers`);
    const sums = await Promise.all(listPrimaries(redis).map((primary) => primary.dbsize()));
    expect(sums.every((sum) => sum > 0)).toBe(true);
  });

  it('gets the library on each primary, again on a primary that lost it', async () => {
    const hasLibrary = async () => (await readLibraries()).map((list) => list.includes(theLibrary().name));
    expect(await hasLibrary()).toEqual([true, true, true]);
    const owner = await cluster.findPrimary(runner.rootKey(POOLS[0]!));
    await listPrimaries(redis)
      .find(({ options }) => options.port === owner.port)!
      .function('FLUSH');
    expect(await registered(POOLS[0]!)).toEqual(['s']);
    expect(await hasLibrary()).toEqual([true, true, true]);
  });

  it('has an unused library deleted from every primary', async () => {
    const old = 'broomwagon_0123456789ab';
    const text = `#!lua name=${old}\nredis.register_function('old', function() return 1 end)`;
    await Promise.all(listPrimaries(redis).map((primary) => primary.function('LOAD', text)));
    await redis.zadd(LIBRARIES_KEY, 1, old);
    await new LibraryUpkeep(redis).review();
    expect((await readLibraries()).filter((list) => list.includes(old))).toEqual([]);
  });

  it('stores the directory of pools, whose sets are on several nodes', async () => {
    const directory = new PoolDirectory(redis, prefix);
    for (const pool of POOLS) await directory.add(pool);
    expect(await directory.list()).toEqual(POOLS.toSorted());
    await directory.remove(POOLS[0]!);
    expect([await directory.asleep(), (await directory.awake()).length]).toEqual([[], POOLS.length - 1]);
  });

  it('takes no new work when one of its primaries is full', async () => {
    const memory = new RedisMemory(redis);
    const full = listPrimaries(redis)[1]!;
    await full.config('SET', 'maxmemory', 1_000_000);
    await memory.look();
    expect(memory.refusal()).toMatchObject({ code: 'STORE_FULL' });
    await full.config('SET', 'maxmemory', 0);
    await memory.look();
    expect(memory.refusal()).toBeUndefined();
  });

  it('answers UNAVAILABLE while the slot of a pool moves, changes nothing, and goes on afterwards', async () => {
    const pool = POOLS[1]!;
    const end = await cluster.beginMove(runner.rootKey(pool));
    const before = await cluster.findPrimary(runner.rootKey(pool));
    const epochs = async () => (await servers.list(pool)).servers;
    await expect(epochs()).rejects.toMatchObject({ code: 'UNAVAILABLE', retryable: true });
    await expect(workers.register(pool, { workerId: 'w', registrationId: 'r', ttlMs: 60_000 })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    });
    await end();
    expect(await cluster.findPrimary(runner.rootKey(pool))).not.toBe(before);
    expect(await registered(pool)).toEqual(['s']);
    expect((await pools.status(pool)).workers).toBe(0);
  });

  it.each([
    ['one of its nodes as a server', () => `redis://127.0.0.1:${cluster.servers[0]!.port}`, /redis\+cluster:\/\//],
    ['its nodes as Sentinels', () => `redis+sentinel://127.0.0.1:${cluster.servers[0]!.port}/main`, /not Sentinels/],
  ])('is refused at an address that names %s, with the right form in the error', async (_, url, says) => {
    const wrong = connectRedis({ url: url() });
    await expect(checkRedisAccess(wrong, prefix)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(says) as string,
    });
    wrong.disconnect();
  });

  it('requires a password if its nodes do, and takes the password of the address', async () => {
    const setPassword = (password: string) =>
      Promise.all(listPrimaries(redis).map((primary) => primary.config('SET', 'requirepass', password)));
    await setPassword('secret');
    const [without, withIt] = [cluster.url, cluster.url.replace('://', '://:secret@')].map((url) =>
      connectRedis({ url }),
    );
    await expect(checkRedisAccess(without!, prefix)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/requires a password/) as string,
    });
    await checkRedisAccess(withIt!, prefix);
    for (const one of [without!, withIt!]) one.disconnect();
    await setPassword('');
  });

  it('is reached at the addresses of the NAT map', async () => {
    const natMap = Object.fromEntries(
      cluster.servers.map(({ port }) => [`127.0.0.1:${port}`, { host: 'localhost', port }]),
    );
    const mapped = connectRedis({ url: `redis+cluster://localhost:${cluster.servers[0]!.port}`, natMap });
    expect(await new PoolStore(new FunctionRunner(mapped, prefix)).status(POOLS[2]!)).toMatchObject({ leases: 0 });
    expect(listPrimaries(mapped).map(({ options }) => options.host)).toEqual(Array(PRIMARIES).fill('localhost'));
    mapped.disconnect();
  });

  it('fails a command in time when no node can be reached', async () => {
    const nobody = connectRedis({ url: 'redis+cluster://127.0.0.1:1', commandTimeoutMs: 300 });
    await expect(nobody.get('key')).rejects.toThrow();
    await expect(new FunctionRunner(nobody, prefix).run({ name: 'pools/status' }, 'p', {})).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    });
    await checkRedisAccess(nobody, prefix);
    nobody.disconnect();
    expect(() => listPrimaries(nobody)).toThrow(/No node/);
  });
});
