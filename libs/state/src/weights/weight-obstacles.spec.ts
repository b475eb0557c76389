import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { WeightStore } from './weight.store';

const test = new TestPools();
const { redis, runner, rounds, leases, servers } = test;
const weights = new WeightStore(runner);
const JOB = 'job';
let pool: string;

beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
  await register('s1');
  await register('s2');
  await test.open({ job: JOB, policy: { name: 'wait' }, neededGroups: 1, samples: 1 });
});
afterAll(() => test.close());

const register = (serverId: string, weightVersion = 1) =>
  servers.register(pool, {
    serverId,
    endpoint: 'http://e',
    dialect: 'vllm',
    probe: false,
    instanceId: 'i',
    maxInflight: 8,
    weight: 1,
    weightVersion,
  });
const begin = (version: number, syncId = `to-${version}`) =>
  weights.begin(pool, { syncId, version, mode: 'abort', deadlineMs: 60_000 });
const end = (outcome: 'committed' | 'rolled-back', syncId: string) =>
  weights.end(pool, { syncId, outcome, reason: 'asked' });
const report = (serverId: string, weightVersion: number) => servers.update(pool, { serverId, weightVersion });
/** Reasons why an acquire and the round are blocked; undefined without an obstacle. */
async function reasons() {
  // The load-balancer rescores after each change of settings too.
  await servers.rescore(pool, {});
  const acquireId = test.unique('q');
  const { results } = await leases.acquire(pool, [{ acquireId, requestId: 'free', ...test.holder }]);
  await leases.release(pool, [{ acquireId }]);
  const { blockedReason } = await rounds.status(pool, { job: JOB });
  expect(blockedReason?.code).toBe(blockedReason && 'NO_SERVER_AVAILABLE');
  return { acquire: (results[0] as { reason?: string }).reason, round: blockedReason?.reason };
}
const FREE = { acquire: undefined, round: undefined };
const UNKNOWN = { acquire: 'weights-unknown', round: 'weights-unknown' };
const DIFFER = { acquire: 'weights-differ', round: 'weights-differ' };

it('reports servers whose weights are unknown, then servers of another version than the pool', async () => {
  await begin(2);
  await redis.hset(test.key('weights:sync'), 'deadlineAtMs', 1);
  await weights.rollbackOverdue(pool, 'to-2');
  expect(await reasons()).toEqual(UNKNOWN);
  // The load ended after the deadline, so the servers have version 2, and the pool still has version 1.
  await report('s1', 2);
  expect(await reasons(), 'one is unknown').toEqual(UNKNOWN);
  await report('s2', 2);
  expect(await reasons()).toEqual(DIFFER);
  const { blockedReason } = await rounds.status(pool, { job: JOB });
  expect(blockedReason!.message).toMatch(/The pool has weights of version 1.*s1 version 2.*weights\.begin/);
  await begin(2, 'again');
  await report('s2', 2);
  await end('committed', 'again');
  expect(await reasons()).toEqual(FREE);
});

it('reports nothing while a server has the version of the pool, and no server that is closed', async () => {
  await begin(2);
  await report('s1', 2);
  await end('committed', 'to-2');
  expect(await reasons()).toEqual(FREE);
  await servers.cordon(pool, { serverId: 's1', cordoned: true });
  expect(await reasons()).toEqual(DIFFER);
  await servers.cordon(pool, { serverId: 's2', cordoned: true });
  expect(await reasons()).toEqual({ acquire: 'none-ready', round: undefined });
});

it('gives no leases to a server whose load has failed, until its weights are reported', async () => {
  await servers.update(pool, { serverId: 's1', weightsUnknown: true });
  expect((await servers.list(pool, { serverId: 's1' })).servers).toMatchObject([
    { state: 'quarantined', weightsUnknown: true },
  ]);
  expect(await reasons()).toEqual(FREE);
  await begin(1);
  await servers.update(pool, { serverId: 's2', weightsUnknown: true });
  await end('rolled-back', 'to-1');
  expect(await reasons()).toEqual(UNKNOWN);
  await report('s2', 1);
  expect(await reasons()).toEqual(FREE);
  expect((await servers.list(pool, { serverId: 's1' })).servers).toMatchObject([{ state: 'quarantined' }]);
});
