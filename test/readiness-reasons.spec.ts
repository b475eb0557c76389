import type { ReadinessReply } from '@broomwagon/contracts';
import { type ServerHandle, startRedis } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readinessSubject } from '../libs/contracts/src/readiness.dto';
import { TestSystem } from './system/test-system';

const APPS = ['admin-api', 'gateway', 'load-balancer', 'trainer-coordinator', 'worker'];

let redis: ServerHandle;
let system: TestSystem;

beforeAll(async () => {
  redis = await startRedis();
  system = await TestSystem.start({ redisUrl: redis.url, workers: 1, engines: 0 });
  await Promise.all([
    system.startApp('gateway', 'gateway-1', { API_KEYS: 'off' }),
    system.startApp('admin-api', 'admin-api-1'),
  ]);
});
afterAll(async () => {
  await system?.stop();
  await redis?.stop();
});

const readAll = () => system.client.messaging.requestAll<ReadinessReply>(readinessSubject(system.pool), {}, 5_000);

/** Reasons and warnings of the named check, by service. */
async function reasonsByApp(name: string): Promise<Record<string, string | undefined>> {
  const replies = await readAll();
  return Object.fromEntries(
    replies.flatMap(({ app, checks }) =>
      checks.filter(({ check }) => check === name).map(({ reason }) => [app, reason] as const),
    ),
  );
}

it('shows one cause of a lost Redis in all services: over NATS, in the body of /readyz and as a metric', async () => {
  await expect
    .poll(async () => (await readAll()).map(({ app, ready }) => `${app} ${ready}`).toSorted())
    .toEqual(APPS.map((app) => `${app} true`));
  await redis.kill();
  const { host } = new URL(redis.url);
  const refused = `Redis at ${host}: connect ECONNREFUSED ${host}`;
  const stateful = APPS.filter((app) => app !== 'worker');
  await expect.poll(() => reasonsByApp('redis')).toEqual(Object.fromEntries(stateful.map((app) => [app, refused])));
  const payloads = `Redis at ${host} (payloads): connect ECONNREFUSED ${host}`;
  await expect
    .poll(() => reasonsByApp('payloads'))
    .toEqual({ gateway: payloads, 'trainer-coordinator': payloads, worker: payloads });
  for (const name of ['gateway-1', 'admin-api-1', 'load-balancer-1', 'trainer-coordinator-1']) {
    const response = await fetch(`http://127.0.0.1:${system.port(name)}/readyz`);
    expect([name, response.status]).toEqual([name, 503]);
    expect(await response.json()).toMatchObject({ error: { redis: { reason: refused } } });
    expect(await system.metrics(name)).toContain(`check="redis",reason="${refused}"`);
  }
  await redis.restart();
  await expect.poll(async () => (await readAll()).filter(({ ready }) => !ready)).toEqual([]);
  expect(await system.metrics('gateway-1')).not.toContain('readiness_problem{');
});
