import { readFileSync } from 'node:fs';
import { access, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { connect } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startNats } from './nats-server';
import { redisAnswers } from './redis-answers';
import { startRedis } from './redis-server';
import type { ServerHandle } from './server-handle';

let folder: string;
const started: ServerHandle[] = [];
const keep = (server: ServerHandle) => (started.push(server), server);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broomwagon-servers-spec-'));
});
afterEach(async () => {
  for (const server of started.splice(0)) await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

describe('startRedis', () => {
  it('keeps its data over a crash, evicts nothing and writes no snapshots', async () => {
    const server = keep(await startRedis());
    const redis = new Redis(server.url);
    redis.on('error', () => undefined);
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    expect(await redis.config('GET', 'save')).toEqual(['save', '']);
    expect(await redis.config('GET', 'appendfsync')).toEqual(['appendfsync', 'everysec']);
    await redis.set('key', 'value');
    const firstPid = server.pid;
    await server.kill();
    await expect(redisAnswers(server.url)).rejects.toThrow(/ECONNREFUSED/);
    await server.restart();
    expect(server.pid).not.toBe(firstPid);
    expect(await redis.get('key')).toBe('value');
    redis.disconnect();
  });

  it('removes its folder when it stops, unless it is to be kept', async () => {
    const gone = join(folder, 'gone');
    const kept = join(folder, 'kept');
    const servers = await Promise.all([startRedis({ folder: gone }), startRedis({ folder: kept, keepFolder: true })]);
    await Promise.all(servers.map((server) => server.stop()));
    expect(await isThere(gone)).toBe(false);
    expect(await readdir(kept)).toContain('appendonlydir');
    await servers[0].stop();
  });

  it('lets in only the given user', async () => {
    const password = 'p@ss "word"/%';
    const server = keep(await startRedis({ user: 'broom', password, configuration: 'databases 3' }));
    expect(await redisAnswers(server.url)).toBe(true);
    await expect(redisAnswers(`redis://127.0.0.1:${server.port}`)).rejects.toThrow(/NOAUTH/);
    const redis = new Redis(server.url);
    expect(await redis.config('GET', 'databases')).toEqual(['databases', '3']);
    redis.disconnect();
  });

  it('asks the default user for a password given alone', async () => {
    const server = keep(await startRedis({ password: 'secret' }));
    expect(await redisAnswers(server.url)).toBe(true);
    await expect(redisAnswers(`redis://127.0.0.1:${server.port}`)).rejects.toThrow(/NOAUTH/);
  });

  it('quotes its log when it cannot start, and leaves nothing behind', async () => {
    const place = join(folder, 'bad');
    const bad = startRedis({ folder: place, configuration: 'no-such-directive yes' });
    await expect(bad).rejects.toMatchObject({ code: 'UNAVAILABLE', message: /no-such-directive/ as never });
    expect(await isThere(place)).toBe(false);
  });

  it('never takes a stranger on its port for itself', async () => {
    const first = keep(await startRedis());
    await expect(startRedis({ port: first.port })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/address already in use/i) as string,
    });
  });
});

describe('startNats', () => {
  it('has JetStream and keeps a stream over a crash', async () => {
    const server = keep(await startNats());
    const before = await connect({ servers: server.url, reconnect: false });
    await (await before.jetstreamManager()).streams.add({ name: 'details', subjects: ['details.>'] });
    await before.jetstream().publish('details.one');
    await server.kill();
    await server.restart();
    const after = await connect({ servers: server.url });
    const stream = await (await after.jetstreamManager()).streams.info('details');
    expect(stream.state.messages).toBe(1);
    await after.close();
  });

  it('lets in only the given user', async () => {
    const server = keep(await startNats({ user: 'broom', password: 'p@ss', configuration: 'max_payload: 2MB' }));
    const nats = await connect({ servers: `127.0.0.1:${server.port}`, user: 'broom', pass: 'p@ss' });
    expect(nats.info?.max_payload).toBe(2 * 1024 * 1024);
    await nats.close();
    await expect(connect({ servers: `127.0.0.1:${server.port}` })).rejects.toThrow(/Authorization/i);
  });

  it('is silent while paused and answers again when resumed', async () => {
    const server = keep(await startNats());
    const nats = await connect({ servers: server.url });
    await server.pause();
    // The signal is sent, but a busy machine may let the server run on for a moment.
    if (process.platform === 'linux') {
      await expect.poll(() => readFileSync(`/proc/${server.pid}/stat`, 'utf8')).toMatch(/\) T /);
    }
    const silent = nats.flush().then(() => 'answered');
    expect(await Promise.race([silent, new Promise((resolve) => setTimeout(resolve, 200, 'silent'))])).toBe('silent');
    await server.resume();
    expect(await silent).toBe('answered');
    await nats.close();
  });
});
