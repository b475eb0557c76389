import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { bootstrapService, loadConfig, setFailpoints, type RunningService } from '@broomwagon/platform';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerModule } from '../load-balancer.module';

const { pool: keyPrefix } = testPool();
let replicas: RunningService<LoadBalancerConfig>[];
let client: TypedClient;
let pool: string;
let worker: { workerId: string; workerEpoch: number };
let sequence = 0;

function startReplica(): Promise<RunningService<LoadBalancerConfig>> {
  const config = loadConfig(LoadBalancerConfig, {
    env: {
      NATS_URL: testNatsUrl(),
      REDIS_URL: testRedisUrl(),
      REDIS_KEY_PREFIX: keyPrefix,
      LOG_LEVEL: 'silent',
      PROBE_INTERVAL_MS: '600000',
    },
  });
  config.pools = Array.from({ length: 10 }, (_, n) => `${keyPrefix}-${n}`);
  return bootstrapService(LoadBalancerModule, { app: 'load-balancer', config });
}

beforeAll(async () => {
  replicas = await Promise.all([startReplica(), startReplica()]);
  client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await client.messaging.connection.close();
  await flushPrefix(testRedisUrl(), `${keyPrefix}:`);
});
beforeEach(async () => {
  pool = `${keyPrefix}-${sequence++}`;
  const { workerEpoch } = await client.call(pool, 'worker.register', {
    workerId: 'w',
    registrationId: 'r',
    ttlMs: 60_000,
  });
  worker = { workerId: 'w', workerEpoch };
});
const server = (serverId: string, more: object = {}) =>
  client.call(pool, 'server.register', {
    serverId,
    endpoint: 'http://127.0.0.1:9',
    dialect: 'vllm',
    instanceId: serverId,
    maxInflight: 1_000,
    ...more,
  });
let acquires = 0;
const acquire = (more: object = {}) =>
  client.call(pool, 'lb.acquire', { acquireId: `a${acquires++}`, requestId: 'job/g/0', ...worker, ...more });

it('lets every replica act by new settings from the next acquire on', async () => {
  await server('a', { weight: 2 });
  await server('b');
  expect(await client.call(pool, 'pool.settings', {})).toEqual({ version: 0, settings: {}, policy: 'least-inflight' });
  const settings = { policy: 'round-robin', decisionSampleEvery: 5 } as const;
  expect(await client.call(pool, 'pool.configure', settings)).toEqual({ version: 1, settings, policy: 'round-robin' });
  const grants = await Promise.all(Array.from({ length: 60 }, () => acquire()));
  expect(grants.filter(({ serverId }) => serverId === 'a').length).toBe(40);
  expect(grants.every(({ decision }) => decision.policy === 'round-robin' && decision.policyVersion === 1)).toBe(true);
  const back = await client.call(pool, 'pool.configure', { reset: ['policy', 'decisionSampleEvery'] });
  expect(back).toMatchObject({ version: 2, policy: 'least-inflight' });
  expect((await acquire()).decision).toMatchObject({ policy: 'least-inflight', policyVersion: 2 });
  const { decisions } = await client.call(pool, 'lb.decisions', { full: true });
  expect(decisions.length).toBe(12);
  const page = await client.call(pool, 'lb.decisions', { limit: 10 });
  expect(page.decisions.map(({ seq }) => seq)).toEqual(Array.from({ length: 10 }, (_, n) => 61 - n));
  const next = await client.call(pool, 'lb.decisions', { limit: 10, cursor: page.cursor });
  expect(next.decisions[0]!.seq).toBe(51);
});

it('goes on with a change of settings whose replica died before all servers were scored', async () => {
  await server('a');
  setFailpoints('load-balancer.configure.before-apply=throw@1');
  await expect(client.call(pool, 'pool.configure', { policy: 'consistent-hash' })).rejects.toMatchObject({
    code: 'INTERNAL',
  });
  setFailpoints('');
  await expect
    .poll(async () => (await client.call(pool, 'pool.settings', {})).policy, { timeout: 10_000 })
    .toBe('consistent-hash');
  expect((await acquire()).decision.branch).toBe('hash');
});

it('tells the rank and the snapshot of an acquire that asks, and clears sessions', async () => {
  await server('a', { labels: { zone: 'z' } });
  await server('b');
  const first = await acquire({ sessionId: 's', dpRank: 2, explain: true, labels: { zone: 'z' } });
  expect(first).toMatchObject({
    serverId: 'a',
    dpRank: 2,
    decision: { snapshot: { wish: { labels: { zone: 'z' } } } },
  });
  const many = await client.call(pool, 'lb.acquire-many', {
    ...worker,
    acquires: [
      { acquireId: 'm1', requestId: 'r', sessionId: 's', explain: true },
      { acquireId: 'm2', requestId: 'r' },
    ],
  });
  expect(many.leases[0]).toMatchObject({ serverId: 'a', dpRank: 2, decision: { branch: 'sticky-hit' } });
  expect(many.leases[1]).not.toHaveProperty('decision');
  expect(await client.call(pool, 'lb.clear-sessions', {})).toEqual({ cleared: 1 });
  const page = await (await fetch(`http://127.0.0.1:${replicas[0]!.httpPort}/metrics`)).text();
  expect(page).toContain('broomwagon_session_choices_total');
});

it('refuses bad settings and wishes, and changes nothing', async () => {
  await server('a');
  const before = await client.call(pool, 'pool.settings', {});
  const refused = (operation: string, body: object) =>
    client.messaging.request(`rollout.v1.${pool}.${operation}`, body);
  const unknown = refused('pool.configure', { policy: 'fastest', affinityBreakMargin: 1 });
  await expect(unknown).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    field: 'policy',
    message: expect.stringMatching(
      /least-inflight.*least-tokens.*least-sessions.*round-robin.*consistent-hash/,
    ) as string,
  });
  const many = Array.from({ length: 17 }, (_, n) => ({ acquireId: `x${n}`, requestId: 'r', explain: true }));
  const bad: [string, object][] = [
    ['pool.configure', { affinityBreakMargin: -1 }],
    ['pool.configure', { affinityBreakMargin: 0.5 }],
    ['pool.configure', { groupAffinityCap: 0 }],
    ['pool.configure', { groupPlacement: 'together' }],
    ['pool.configure', { groupSpreadAboveKvUse: 1.1 }],
    ['pool.configure', { maxSessions: 0 }],
    ['pool.configure', { reset: ['everything'] }],
    ['pool.configure', { surprise: 1 }],
    ['lb.decisions', { cursor: 'x' }],
    ['lb.decisions', { limit: 129 }],
    [
      'lb.acquire',
      { acquireId: 'x', requestId: 'r', ...worker, excludeServers: Array.from({ length: 65 }, () => 'a') },
    ],
    ['lb.acquire', { acquireId: 'x', requestId: 'r', ...worker, labels: { zone: 1 } }],
    ['lb.acquire', { acquireId: 'x', requestId: 'r', ...worker, maxWeightLag: -1 }],
    ['lb.acquire', { acquireId: 'x', requestId: 'r', ...worker, dpRank: -1 }],
    ['lb.acquire-many', { ...worker, acquires: many }],
    [
      'server.register',
      { serverId: 'b', endpoint: 'http://a', dialect: 'vllm', maxInflight: 1, labels: { 'a b': 'c' } },
    ],
  ];
  for (const [operation, body] of bad) {
    const call = refused(operation, body);
    await expect(call, `${operation} ${JSON.stringify(body)}`).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  }
  expect(await client.call(pool, 'pool.settings', {})).toEqual(before);
  expect((await client.call(pool, 'lb.status', {})).leases).toBe(0);
});
