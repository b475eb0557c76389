import { NO_POOL, type OperationName, POOL_SETTING_DEFAULTS } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { setFailpoints } from '../../../../libs/platform/src/failpoint';
import { openLoadBalancers, type LoadBalancers, type TestWorker } from '../load-balancer.fixture';

let lb: LoadBalancers;
let worker: TestWorker;
beforeAll(async () => {
  lb = await openLoadBalancers(2);
});
afterAll(() => lb.close());
beforeEach(async () => {
  lb.nextPool();
  worker = await lb.worker();
});
const acquire = (more: object = {}) => lb.acquire(worker, more);

it('lets every replica apply new settings from the next acquire on', async () => {
  await lb.server('a', 1_000, { weight: 2 });
  await lb.server('b', 1_000);
  await expect.poll(lb.status).toMatchObject({ readyServers: 2 });
  expect(await lb.call('pool.settings', {})).toEqual({
    version: 0,
    settings: {},
    defaults: { ...POOL_SETTING_DEFAULTS, sessionIdleMs: 14_400_000 },
    effective: { ...POOL_SETTING_DEFAULTS, sessionIdleMs: 14_400_000 },
    policy: 'least-inflight',
  });
  const settings = { policy: 'round-robin', decisionSampleEvery: 5 } as const;
  expect(await lb.call('pool.configure', settings)).toMatchObject({
    version: 1,
    settings,
    effective: { ...settings, maxSessions: 200_000 },
    policy: 'round-robin',
  });
  const grants = await Promise.all(Array.from({ length: 60 }, () => acquire()));
  expect(grants.filter(({ serverId }) => serverId === 'a').length).toBe(40);
  expect(grants.every(({ decision }) => decision.policy === 'round-robin' && decision.policyVersion === 1)).toBe(true);
  const back = await lb.call('pool.configure', { reset: ['policy', 'decisionSampleEvery'] });
  expect(back).toMatchObject({ version: 2, policy: 'least-inflight' });
  expect((await acquire()).decision).toMatchObject({ policy: 'least-inflight', policyVersion: 2 });
  const { decisions } = await lb.call('lb.decisions', { full: true });
  // Every fifth decision is recorded, but at most one in each transition.
  expect(decisions.length).toBeGreaterThan(0);
  expect(decisions.filter(({ seq }) => seq % 5 !== 0)).toEqual([]);
  const page = await lb.call('lb.decisions', { limit: 10 });
  expect(page.decisions.map(({ seq }) => seq)).toEqual(Array.from({ length: 10 }, (_, n) => 61 - n));
  const next = await lb.call('lb.decisions', { limit: 10, cursor: page.cursor });
  expect(next.decisions[0]!.seq).toBe(51);
});

it('rolls settings back as a whole; a version of weights that nobody has committed too', async () => {
  await lb.server('a', 1_000, { weightVersion: 3 });
  const { version } = await lb.call('pool.configure', { requiredWeightVersion: 3, maxSessions: 6 });
  await lb.call('pool.configure', { requiredWeightVersion: 33, reset: ['maxSessions'] });
  await expect.poll(lb.status).toMatchObject({ readyServers: 0 });
  expect(await lb.call('pool.rollback', { version })).toMatchObject({
    version: version + 2,
    settings: { requiredWeightVersion: 3, maxSessions: 6 },
  });
  expect((await acquire()).serverId).toBe('a');
});

it('continues a change of settings whose replica died before all servers were scored', async () => {
  await lb.server('a', 1_000);
  setFailpoints('load-balancer.configure.before-apply=throw@1');
  await expect(lb.call('pool.configure', { policy: 'consistent-hash' })).rejects.toMatchObject({
    code: 'INTERNAL',
  });
  setFailpoints('');
  await expect.poll(async () => (await lb.call('pool.settings', {})).policy).toBe('consistent-hash');
  expect((await acquire()).decision.branch).toBe('hash');
});

it('returns rank and snapshot to an acquire that asks for them, and clears sessions', async () => {
  await lb.server('a', 1_000, { labels: { zone: 'z' } });
  await lb.server('b', 1_000);
  const first = await acquire({ sessionId: 's', dpRank: 2, explain: true, labels: { zone: 'z' } });
  expect(first).toMatchObject({
    serverId: 'a',
    dpRank: 2,
    decision: { snapshot: { request: { labels: { zone: 'z' } } } },
  });
  const many = await lb.call('lb.acquire-many', {
    ...worker,
    acquires: [
      { acquireId: 'm1', requestId: 'r', sessionId: 's', explain: true },
      { acquireId: 'm2', requestId: 'r' },
    ],
  });
  expect(many.leases[0]).toMatchObject({ serverId: 'a', dpRank: 2, decision: { branch: 'sticky-hit' } });
  expect(many.leases[1]).not.toHaveProperty('decision');
  expect(await lb.call('lb.clear-sessions', {})).toEqual({ cleared: 1 });
  expect((await lb.metrics())[0]).toContain('broomwagon_session_choices_total');
});

it('refuses bad settings and requests, and changes nothing', async () => {
  await lb.server('a', 1_000);
  const before = await lb.call('pool.settings', {});
  const unknown = lb.request('pool.configure', { policy: 'fastest', affinityBreakMargin: 1 });
  await expect(unknown).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    field: 'policy',
    message: expect.stringMatching(
      /least-inflight.*least-tokens.*least-sessions.*round-robin.*consistent-hash/,
    ) as string,
  });
  const many = Array.from({ length: 17 }, (_, n) => ({ acquireId: `x${n}`, requestId: 'r', explain: true }));
  const bad: [OperationName, object][] = [
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
    const call = lb.request(operation, body);
    await expect(call, `${operation} ${JSON.stringify(body)}`).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  }
  expect(await lb.call('pool.settings', {})).toEqual(before);
  expect((await lb.call('lb.status', {})).leases).toBe(0);
});

it('lists the existing pools to a caller of any pool', async () => {
  const found = await lb.call('pool.find', { name: lb.pool });
  expect(found.known).toBe(true);
  expect(found.pools).toContain(lb.pool);
  expect(found.pools).toEqual(found.pools.toSorted());
  expect((await lb.call('pool.find', { name: `${lb.pool}-misspelled` })).known).toBe(false);
  await expect(lb.call('pool.find', { name: '-' })).rejects.toMatchObject({ field: 'name' });
  // Load-balancers of other tests may answer this call too.
  const elsewhere = await lb.client.call(NO_POOL, 'pool.find', { name: lb.pool });
  expect(elsewhere).toEqual({ known: expect.any(Boolean) as boolean, pools: expect.any(Array) as string[] });
});
