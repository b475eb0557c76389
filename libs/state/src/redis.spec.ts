import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { testPool, testRedisUrl } from '@broomwagon/testing';
import { afterEach, expect, it } from 'vitest';
import { connectRedis } from './redis';
import { PoolDirectory } from './pools/pool-directory';

const ends: (() => unknown)[] = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/**
 * A proxy to Redis that can drop everything on its open connections without closing them, or answer on them like a
 * primary that has become a replica.
 */
async function openLink() {
  const { hostname, port } = new URL(testRedisUrl());
  const sockets = new Set<Socket>();
  const pairs: [near: Socket, far: Socket][] = [];
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    near.pipe(far).pipe(near);
    pairs.push([near, far]);
    for (const socket of [near, far]) sockets.add(socket.on('error', () => socket.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const lose = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  const demote = () => {
    for (const [near, far] of pairs.splice(0)) {
      far.unpipe(near).on('data', () => near.write("-READONLY You can't write against a read only replica.\r\n"));
      far.resume();
    }
  };
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, lose, demote };
}

it('leaves a connection that answers nothing any more, though it was not closed', async () => {
  const link = await openLink();
  const redis = connectRedis({ url: link.url, commandTimeoutMs: 100, silenceMs: 300 });
  ends.push(() => redis.disconnect());
  await expect.poll(() => redis.ping().catch(() => 'unavailable'), { timeout: 5_000 }).toBe('PONG');
  link.lose();
  await expect(redis.ping()).rejects.toThrow('timed out');
  await expect.poll(() => redis.ping().catch(() => 'away'), { timeout: 5_000 }).toBe('PONG');
});

it('finds the primary again when the known one has become a replica', async () => {
  const link = await openLink();
  const redis = connectRedis({ url: link.url });
  ends.push(() => redis.disconnect());
  await redis.ping();
  link.demote();
  await expect(redis.ping()).rejects.toThrow('READONLY');
  await expect.poll(() => redis.ping().catch(() => 'a replica'), { timeout: 5_000 }).toBe('PONG');
});

it('enters a pool again into a directory that Redis has lost', async () => {
  const redis = connectRedis({ url: testRedisUrl() });
  const { pool: prefix } = testPool();
  ends.push(async () => {
    await redis.del(`${prefix}:pools`);
    await redis.quit();
  });
  const directory = new PoolDirectory(redis, prefix);
  await directory.add('a');
  await redis.del(`${prefix}:pools`);
  expect(await directory.list()).toEqual([]);
  await directory.add('a');
  expect(await directory.list()).toEqual(['a']);
});
