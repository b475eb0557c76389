import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { RoutingStore } from '../routing';
import { ScriptRunner } from './script-runner';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();

afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

it('gives a script half a surrogate pair, as an engine may name its model, as U+FFFD', async () => {
  const routing = new RoutingStore(new ScriptRunner(redis, prefix));
  const server = { serverId: 's', endpoint: 'http://127.0.0.1:1', dialect: 'vllm' as const, instanceId: 'i' };
  const model = 'tiny \ud83d, \\ud83d and 😀';
  await routing.registerServer('p', { ...server, maxInflight: 1, weight: 1, weightVersion: 0, model });
  const { servers } = await routing.listServers('p', '0');
  expect(servers[0]!.model).toBe('tiny \ufffd, \\ud83d and 😀');
});
