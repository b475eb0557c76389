import type { Claim, Epoch } from '@broomwagon/contracts';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { buildSegment, TestPools } from './test-pools.fixture';

// A Redis that is set back repeats all its counters, so fences must not be counters.
const test = new TestPools();
const { redis, rounds, requests, workers, servers } = test;
const job = 'job';
let pool: string;

beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
});
afterAll(() => test.close());

/** Copies all keys of the pool. @returns a function that restores them, as in a Redis that has lost later writes */
async function snapshot(): Promise<() => Promise<void>> {
  const root = test.key('*');
  const names = await redis.keys(root);
  const dumps = await Promise.all(names.map((name) => redis.dumpBuffer(name)));
  return async () => {
    const now = await redis.keys(root);
    if (now.length > 0) await redis.del(now);
    await Promise.all(names.map((name, index) => redis.restore(name, 0, dumps[index]!)));
  };
}

const policy = { name: 'resume' as const, overProvision: 1 };
const open = () => test.open({ policy, neededGroups: 1, samples: 1 });
const FENCED = { code: 'FENCED' };

it('accepts only one of two trainers that took the job over before and after Redis was set back', async () => {
  const { trainerEpoch: first } = await open();
  const setBack = await snapshot();
  const { trainerEpoch: second } = await rounds.takeover(pool, { job, takeoverId: 'second' });
  await setBack();
  const { trainerEpoch: third } = await rounds.takeover(pool, { job, takeoverId: 'third' });
  expect(new Set([first, second, third]).size).toBe(3);
  // The group equals the group that test.open has submitted.
  const group = { groupId: 'g0', digest: 'd', samples: 1, maxTokens: 10, promptRef: 'prompt0', sampling: '{}' };
  const say = (trainerEpoch: Epoch) => rounds.submit(pool, { job, roundId: 'r1', trainerEpoch }, [group]);
  await expect(say(first)).rejects.toMatchObject(FENCED);
  await expect(say(second)).rejects.toMatchObject(FENCED);
  expect(await say(third)).toMatchObject({ roundGroups: 1 });
  // A repeat is the same trainer.
  expect(await rounds.takeover(pool, { job, takeoverId: 'third' })).toMatchObject({ trainerEpoch: third });
});

it('gives each of two trainers that open a job its own epoch, though Redis forgot the first', async () => {
  const setBack = await snapshot();
  const first = await open();
  await setBack();
  const second = await open();
  expect(second.trainerEpoch).not.toBe(first.trainerEpoch);
  await expect(rounds.status(pool, first)).rejects.toMatchObject(FENCED);
  expect(await rounds.status(pool, second)).toMatchObject({ state: 'open' });
});

it('fences a worker whose registration Redis forgot, though another one has registered under its name since', async () => {
  const setBack = await snapshot();
  const register = (registrationId: string) => workers.register(pool, { workerId: 'w', registrationId, ttlMs: 60_000 });
  const { workerEpoch: forgotten } = await register('two');
  await setBack();
  const { workerEpoch } = await register('three');
  expect(workerEpoch).not.toBe(forgotten);
  await expect(workers.heartbeat(pool, { workerId: 'w', workerEpoch: forgotten })).rejects.toMatchObject(FENCED);
  const claim = { claimId: 'c', workerId: 'w', workerEpoch: forgotten, max: 1 };
  await expect(requests.claim(pool, claim)).rejects.toMatchObject(FENCED);
  expect(await register('three')).toMatchObject({ workerEpoch });
});

it('gives two starts of a server before and after a set-back different epochs', async () => {
  const server = (instanceId: string) =>
    servers.register(pool, {
      serverId: 's',
      instanceId,
      endpoint: 'http://s',
      dialect: 'vllm',
      maxInflight: 4,
      weight: 1,
    });
  await server('one');
  const setBack = await snapshot();
  const { epoch: second } = await server('two');
  await setBack();
  const { epoch: third } = await server('three');
  expect(third).not.toBe(second);
  await expect(servers.heartbeat(pool, { serverId: 's', epoch: second })).rejects.toMatchObject(FENCED);
  expect(await servers.heartbeat(pool, { serverId: 's', epoch: third })).toMatchObject({ states: { s: 'ready' } });
});

it('refuses reports of a lost attempt for a later one of the same number, worker and epoch', async () => {
  await open();
  const setBack = await snapshot();
  const [forgotten] = (await test.claim()) as [Claim];
  await setBack();
  const [claimed] = (await test.claim()) as [Claim];
  const number = (claim: Claim) => claim.attempt.split('-')[0];
  expect(number(claimed)).toBe(number(forgotten));
  expect(claimed.attempt).not.toBe(forgotten.attempt);
  const fenced = { code: 'FENCED', field: 'attempt' };
  await expect(test.save(forgotten, 3)).rejects.toMatchObject(fenced);
  await expect(test.fail(forgotten, 3)).rejects.toMatchObject(fenced);
  await expect(test.complete(forgotten)).rejects.toMatchObject(fenced);
  const { items } = await workers.sync(pool, { ...test.holder, kind: 'attempts' });
  expect(items).toMatchObject([{ id: claimed.requestId, attempt: claimed.attempt }]);
  expect(await test.complete(claimed)).toMatchObject({ state: 'finished', groupAccepted: true });
  expect(await redis.hget(test.key(`request:${claimed.requestId}`), 'segments')).toBe(
    `[${buildSegment(claimed, 3).segment}]`,
  );
});
