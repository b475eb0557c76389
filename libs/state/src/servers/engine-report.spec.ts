import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, type TestStore } from '../routing/routing-store.fixture';
import type { EngineReport } from './server.store';

const LIMITS = { suspectAfterMs: 5_000, failedAfterMs: 30_000 };
let test: TestStore;
beforeEach(() => {
  test = openTestStore();
});
afterEach(() => test.close());

async function listed(serverId = 'a') {
  const { servers } = await test.servers.list(test.pool);
  return servers.find((server) => server.serverId === serverId)!;
}
async function say(report: EngineReport) {
  const { epoch, engineWeightVersion: knownWeightVersion } = await listed();
  return test.servers.update(test.pool, { serverId: 'a', epoch, report: { ...report, knownWeightVersion } });
}
/** Lets the server fail by silence, and its engine describe itself afterwards. */
async function failAndAnswer() {
  const { epoch } = await listed();
  await test.redis.zadd(`${test.root}:servers:watched`, Date.now() - 60_000, 'a');
  await test.servers.review(test.pool, LIMITS);
  expect(await listed()).toMatchObject({ state: 'failed', weightVersion: 0 });
  await test.describe('a');
  expect((await listed()).epoch).not.toBe(epoch);
}

it('treats a later start of the engine as a restart: a new epoch without leases, of unknown weights', async () => {
  await test.server('a', 1, { weightVersion: 3 });
  await say({ startedAtSeconds: 100.25 });
  const w = await test.worker('w');
  await test.acquire(w);
  const { epoch } = await listed();
  expect(await say({ startedAtSeconds: 100.25 })).toMatchObject({ epoch });
  // An earlier start is another process behind the same address.
  expect(await say({ startedAtSeconds: 90 })).toMatchObject({ epoch });
  expect(await listed()).toMatchObject({ weightVersion: 3, inflight: 1 });
  const change = await say({ startedAtSeconds: 200 });
  expect(change.epoch).not.toBe(epoch);
  expect(await listed()).toMatchObject({ state: 'failed', weightVersion: 0, inflight: 0, engineStartedAtSeconds: 200 });
  expect(await test.describe('a')).toMatchObject({ state: 'ready', epoch: change.epoch });
  expect(await test.sweep()).toBe(1);
  // Another replica reports the same restart too late.
  await expect(
    test.servers.update(test.pool, { serverId: 'a', epoch, report: { startedAtSeconds: 200 } }),
  ).rejects.toMatchObject({ code: 'FENCED' });
});

it('makes a fenced server ready again after its restart', async () => {
  const { epoch } = await test.server('a');
  await say({ startedAtSeconds: 100 });
  await test.servers.fence(test.pool, { serverId: 'a', epoch, reason: 'asked' });
  await say({ startedAtSeconds: 100 });
  expect((await listed()).state).toBe('failed');
  await say({ startedAtSeconds: 101 });
  await test.describe('a');
  expect((await listed()).state).toBe('ready');
});

it('does not restore the weight version of a failed server, unless its engine has not restarted', async () => {
  await test.server('keeper', 1, { weightVersion: 3 });
  await test.server('a', 1, { weightVersion: 3 });
  await say({ startedAtSeconds: 100 });
  await test.configure({ requiredWeightVersion: 3 });
  await failAndAnswer();
  expect(await listed()).toMatchObject({ state: 'quarantined', unconfirmedWeightVersion: 3 });
  await say({ startedAtSeconds: 100 });
  expect(await listed()).toMatchObject({ state: 'ready', weightVersion: 3 });
  expect(await listed()).not.toHaveProperty('unconfirmedWeightVersion');

  await failAndAnswer();
  await say({ startedAtSeconds: 101 });
  await test.describe('a');
  expect(await listed()).toMatchObject({ state: 'quarantined', weightVersion: 0 });
  await say({ startedAtSeconds: 101 });
  expect(await listed()).toMatchObject({ state: 'quarantined', weightVersion: 0 });
  // The trainer has loaded the weights again.
  await test.servers.update(test.pool, { serverId: 'a', weightVersion: 3 });
  expect((await listed()).state).toBe('ready');
});

it('restores the weight version when a trainer registers the same start again', async () => {
  await test.server('keeper', 1, { weightVersion: 3 });
  await test.server('a', 1, { weightVersion: 3 });
  await failAndAnswer();
  // A list registers the server, which proves only that something answers.
  await test.servers.register(test.pool, {
    serverId: 'a',
    instanceId: 'a',
    endpoint: 'http://a:8000',
    dialect: 'vllm',
    maxInflight: 1,
    weight: 1,
    discovered: true,
  });
  expect(await listed()).toMatchObject({ weightVersion: 0 });
  await test.server('a', 1, { weightVersion: undefined });
  expect(await listed()).toMatchObject({ state: 'ready', weightVersion: 3 });
});

it('keeps the weight version of a trainer whose engine reports another number, also over a failure', async () => {
  await test.server('keeper', 1);
  await test.server('a', 1, { weightVersion: 57 });
  const report = { startedAtSeconds: 100, weightVersion: 3 };
  await say(report);
  expect(await listed()).toMatchObject({ weightVersion: 57, engineWeightVersion: 3 });
  await failAndAnswer();
  await say(report);
  expect(await listed()).toMatchObject({ weightVersion: 57, engineWeightVersion: 3 });
  await say({ ...report, weightVersion: 4 });
  expect(await listed()).toMatchObject({ weightVersion: 4 });
  // After a restart, the version that the engine reports counts.
  await say({ startedAtSeconds: 200, weightVersion: 4 });
  expect(await listed()).toMatchObject({ weightVersion: 4, engineWeightVersion: 4 });
});

it('takes an equal report after a failure as the same weights, unless another version was set by name', async () => {
  await test.server('keeper', 1);
  await test.server('a', 1);
  await say({ weightVersion: 3 });
  await failAndAnswer();
  await say({ weightVersion: 3 });
  expect(await listed()).toMatchObject({ weightVersion: 3 });
  await test.servers.update(test.pool, { serverId: 'a', weightVersion: 57 });
  await failAndAnswer();
  await say({ weightVersion: 3 });
  expect(await listed()).toMatchObject({ weightVersion: 0, unconfirmedWeightVersion: 57 });
  await say({ weightVersion: 58 });
  expect(await listed()).toMatchObject({ weightVersion: 58 });
});

it('follows the reported weight version when it changes, so that a late report undoes nothing', async () => {
  await test.server('a', 1);
  await say({ weightVersion: -1 });
  expect(await listed()).toMatchObject({ weightVersion: 0 });
  await say({ weightVersion: 4 });
  expect(await listed()).toMatchObject({ weightVersion: 4, engineWeightVersion: 4 });
  await test.servers.update(test.pool, { serverId: 'a', weightVersion: 5 });
  await say({ weightVersion: 4 });
  expect(await listed()).toMatchObject({ weightVersion: 5 });
  await say({ weightVersion: 6 });
  expect(await listed()).toMatchObject({ weightVersion: 6 });
  // Another replica read the version before that, and reports it only now.
  const { epoch } = await listed();
  const late = { weightVersion: 5, knownWeightVersion: 4 };
  await test.servers.update(test.pool, { serverId: 'a', epoch, report: late });
  await test.servers.update(test.pool, { serverId: 'a', epoch, report: { weightVersion: -1, knownWeightVersion: 4 } });
  expect(await listed()).toMatchObject({ weightVersion: 6, engineWeightVersion: 6 });
  // A restarted engine reports no version.
  await say({ weightVersion: -1 });
  expect(await listed()).toMatchObject({ weightVersion: 0 });
});
