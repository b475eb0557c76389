import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it, vi } from 'vitest';
import type { Redis } from 'ioredis';
import { connectRedis } from './redis';

const redis = connectRedis({ url: testRedisUrl() }) as Redis;
afterAll(() => redis.quit());

it('sends the commands of one turn of the event loop by one write, in their order', async () => {
  await redis.ping();
  const [write, writeMany] = [vi.spyOn(redis.stream, '_write'), vi.spyOn(redis.stream, '_writev' as '_write')];
  const texts = Array.from({ length: 64 }, (_, index) => `text ${index}`);
  // Each command is sent in a microtask of its own, as by handlers of messages.
  const answers = texts.map(async (text, index) => {
    for (let wait = 0; wait < index; wait++) await undefined;
    return redis.echo(text);
  });
  expect(await Promise.all(answers)).toEqual(texts);
  expect(writeMany).toHaveBeenCalledOnce();
  expect(write).not.toHaveBeenCalled();
});
