import { Logger } from '@nestjs/common';
import { FaultyLink, startRedis, type ServerHandle } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ReplicaMarks } from './library/schema-version';
import { connectRedis } from './redis';
import { RedisLink } from './redis-link';

describe('the link to Redis', () => {
  let server: ServerHandle;
  let admin: Redis;
  let lines: string[];
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    admin.on('error', () => undefined);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    lines = [];
    for (const level of ['log', 'warn', 'error'] as const) {
      vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => {
        const text = parts.find((part) => typeof part === 'string' && part.includes('Redis at'));
        if (text !== undefined) lines.push(`${level}: ${String(text)}`);
      });
    }
  });
  afterEach(() => vi.restoreAllMocks());

  it('reports a refused password, requests a restart, and is up again with the earlier password', async () => {
    await admin.acl('SETUSER', 'service', 'on', '>before', '~*', '&*', '+@all');
    const redis = connectRedis({ url: server.url.replace('redis://', 'redis://service:before@') });
    const restarts: Error[] = [];
    const link = new RedisLink(redis, (error) => void restarts.push(error), 'state', 1);
    await redis.ping();
    await admin.acl('SETUSER', 'service', 'resetpass', '>after');
    await admin.client('KILL', 'USER', 'service');
    await expect.poll(() => link.problem()).toMatch(/refuses the user and password of REDIS_URL/);
    await expect.poll(() => restarts.length).toBeGreaterThan(0);
    await admin.acl('SETUSER', 'service', 'resetpass', '>before');
    await expect.poll(() => link.problem()).toBeUndefined();
    await expect.poll(() => lines.filter((line) => /works again/.test(line)).length).toBe(1);
    expect(lines.filter((line) => /Outage begins/.test(line))).toHaveLength(1);
    expect(lines.filter((line) => /refuses the user/.test(line))).toHaveLength(1);
    redis.disconnect();
  });

  it('works again although a server with a password answers a new connection later than any command may take', async () => {
    await admin.acl('SETUSER', 'slow', 'on', '>secret', '~*', '&*', '+@all');
    const faults = await FaultyLink.start(server.port);
    const url = `redis://slow:secret@127.0.0.1:${faults.port}`;
    const redis = connectRedis({ url, commandTimeoutMs: 500, silenceMs: 4_000 });
    const link = new RedisLink(redis, () => undefined);
    await expect.poll(() => redis.ping().catch(String)).toBe('PONG');
    faults.greetingDelayMs = 1_500;
    faults.cut();
    await expect.poll(() => link.problem()).toBeDefined();
    await expect.poll(() => link.problem()).toBeUndefined();
    expect(lines.filter((line) => /Outage (begins|has ended)/.test(line))).toHaveLength(2);
    redis.disconnect();
    await faults.stop();
  });

  it('is not writable while the server is a replica', async () => {
    const redis = connectRedis({ url: server.url });
    const marks = new ReplicaMarks(redis, 'link-spec');
    await marks.checkWritable();
    await admin.replicaof('127.0.0.1', 1);
    await expect(marks.checkWritable()).rejects.toThrow('READONLY');
    await admin.replicaof('NO', 'ONE');
    await expect.poll(() => marks.checkWritable().then(() => 'writable', String)).toBe('writable');
    redis.disconnect();
  });
});
