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
/** Silent until it has failed, then its engine describes itself. */
async function failAndAnswer() {
  const { epoch } = await listed();
  await test.redis.zadd(`${test.root}:servers:watched`, Date.now() - 60_000, 'a');
  await test.servers.review(test.pool, LIMITS);
  expect(await listed()).toMatchObject({ state: 'failed', weightVersion: 0 });
  await test.describe('a');
  expect((await listed()).epoch).not.toBe(epoch);
}

it('takes a later start of the engine for a restart: a new epoch without leases, of unknown weights', async () => {
  await test.server('a', 1, { weightVersion: 3 });
  await say({ startedAtSeconds: 100.25 });
  const w = await test.worker('w');
  await test.acquire(w);
  const { epoch } = await listed();
  expect(await say({ startedAtSeconds: 100.25 })).toMatchObject({ epoch });
  // Another process behind the same address.
  expect(await say({ startedAtSeconds: 90 })).toMatchObject({ epoch });
  expect(await listed()).toMatchObject({ weightVersion: 3, inflight: 1 });
  const change = await say({ startedAtSeconds: 200 });
  expect(change.epoch).not.toBe(epoch);
  expect(await listed()).toMatchObject({ state: 'failed', weightVersion: 0, inflight: 0, engineStartedAtSeconds: 200 });
  expect(await test.describe('a')).toMatchObject({ state: 'ready', epoch: change.epoch });
  expect(await test.sweep()).toBe(1);
  // Another replica has read the restart too.
  await expect(
    test.servers.update(test.pool, { serverId: 'a', epoch, report: { startedAtSeconds: 200 } }),
  ).rejects.toMatchObject({ code: 'FENCED' });
});

it('lets the restart of a fenced server bring it back', async () => {
  const { epoch } = await test.server('a');
  await say({ startedAtSeconds: 100 });
  await test.servers.fence(test.pool, { serverId: 'a', epoch, reason: 'asked' });
  await say({ startedAtSeconds: 100 });
  expect((await listed()).state).toBe('failed');
  await say({ startedAtSeconds: 101 });
  await test.describe('a');
  expect((await listed()).state).toBe('ready');
});

it('gives no version of before to a server that had failed, unless its engine is still the same start', async () => {
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
  // Its trainer has loaded them anew.
  await test.servers.update(test.pool, { serverId: 'a', weightVersion: 3 });
  expect((await listed()).state).toBe('ready');
});

it('takes the word of a trainer that names the start again for what it was before', async () => {
  await test.server('keeper', 1, { weightVersion: 3 });
  await test.server('a', 1, { weightVersion: 3 });
  await failAndAnswer();
  // Found by a list, which only knows that something answers.
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

it('keeps the number of a trainer whose engine has another one, also over a failure', async () => {
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
  // A restart: whatever it says now is its own.
  await say({ startedAtSeconds: 200, weightVersion: 4 });
  expect(await listed()).toMatchObject({ weightVersion: 4, engineWeightVersion: 4 });
});

it('takes the same word after a failure for the same weights, unless somebody had named others', async () => {
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

it('follows the word of the engine for its weights when it changes, so that a late one undoes nothing', async () => {
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
  // Another replica asked before that, and is heard only now.
  const { epoch } = await listed();
  const late = { weightVersion: 5, knownWeightVersion: 4 };
  await test.servers.update(test.pool, { serverId: 'a', epoch, report: late });
  await test.servers.update(test.pool, { serverId: 'a', epoch, report: { weightVersion: -1, knownWeightVersion: 4 } });
  expect(await listed()).toMatchObject({ weightVersion: 6, engineWeightVersion: 6 });
  // Started anew: it names none.
  await say({ weightVersion: -1 });
  expect(await listed()).toMatchObject({ weightVersion: 0 });
});
