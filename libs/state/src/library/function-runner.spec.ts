import { inspect } from 'node:util';
import { flushPrefix, startRedis, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { PoolStore } from '../pools/pool.store';
import { ServerStore } from '../servers/server.store';
import { FunctionRunner, loadLibrary, theLibrary } from './function-runner';
import { LIBRARIES_KEY, LibraryUpkeep } from './library-upkeep';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();

afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

it('gives a script half a surrogate pair, as an engine may name its model, as U+FFFD', async () => {
  const servers = new ServerStore(new FunctionRunner(redis, prefix));
  const server = { serverId: 's', endpoint: 'http://127.0.0.1:1', dialect: 'vllm' as const, instanceId: 'i' };
  const model = 'tiny \ud83d, \\ud83d and 😀';
  await servers.register('p', { ...server, maxInflight: 1, weight: 1, weightVersion: 0, model });
  const listed = await servers.list('p');
  expect(listed.servers[0]!.model).toBe('tiny \ufffd, \\ud83d and 😀');
});

it('leaves out a field that is null, which is true in Lua', async () => {
  const servers = new ServerStore(new FunctionRunner(redis, prefix));
  const server = { serverId: 's', endpoint: 'http://127.0.0.1:1', dialect: 'vllm' as const, instanceId: 'i' };
  const model = null as unknown as undefined;
  await servers.register('nulls', { ...server, maxInflight: 1, weight: 1, weightVersion: 0, model });
  const listed = await servers.list('nulls');
  expect(listed.servers).toMatchObject([{ serverId: 's' }]);
  expect(listed.servers[0]).not.toHaveProperty('model');
});

it('loads the library again after FUNCTION FLUSH and FLUSHALL, once for many calls', async () => {
  const own = await startRedis();
  const connection = connectRedis({ url: own.url });
  const pools = new PoolStore(new FunctionRunner(connection, prefix));
  const leases = async () => (await pools.status('p')).leases;
  expect(await leases()).toBe(0);
  await connection.function('FLUSH');
  expect(await Promise.all(Array.from({ length: 20 }, leases))).toEqual(Array<number>(20).fill(0));
  await connection.flushall();
  expect(await leases()).toBe(0);
  await connection.quit();
  await own.stop();
});

it('keeps the libraries of two versions, and deletes an unused one', async () => {
  const own = await startRedis();
  const connection = connectRedis({ url: own.url });
  const other = 'broomwagon_0123456789ab';
  await connection.function('LOAD', `#!lua name=${other}\nredis.register_function('old', function() return 1 end)`);
  await connection.zadd(LIBRARIES_KEY, Date.now() - 3_500_000, other);
  const names = async () => JSON.stringify(await connection.function('LIST'));
  await loadLibrary(connection);
  await new LibraryUpkeep(connection).review();
  expect(await connection.fcall('old', 0)).toBe(1);
  expect(await names()).toContain(theLibrary().name);
  await new LibraryUpkeep(connection, undefined, 3_400_000).review();
  expect(await names()).not.toContain(other);
  expect(await names()).toContain(theLibrary().name);
  await connection.quit();
  await own.stop();
});

it('names the library that Redis did not load, and why, without the text of the library', async () => {
  const text = `#!lua name=broken\nlocal marker = '${'x'.repeat(10_000)}'\nlocal function`;
  const functions = new Map([['pools/configure', { name: 'broken_configure', isRefusedWhenFull: false }]]);
  const broken = { ...theLibrary(), name: 'broken', text, functions };
  const error: unknown = await new PoolStore(new FunctionRunner(redis, prefix, undefined, broken)).settings('p').then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({
    code: 'INTERNAL',
    message: expect.stringMatching(/^Redis did not load the library broken: ERR Error compiling function/),
  });
  expect(inspect(error, { depth: 10 })).not.toContain('xxx');
});
