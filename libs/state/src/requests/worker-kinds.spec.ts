import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
beforeEach(() => test.fresh());
afterAll(() => test.close());

const WAIT = { name: 'wait' } as const;
const open = (job: string, workerKind?: string) =>
  test.open({ job, workerKind, policy: WAIT, neededGroups: 1, samples: 2 });
const claim = (more: { workerKind?: string; job?: string; replyTo?: string; waitMs?: number } = {}) =>
  test.requests.claim(test.pool, { claimId: test.unique('c'), ...test.holder, max: 8, ...more });
const jobs = async (more: Parameters<typeof claim>[0]) => (await claim(more)).claims.map(({ job }) => job);
const blocked = async (job: string) => (await test.rounds.status(test.pool, { job })).blockedReason;
/** Makes a round look as if it had been opened long ago. */
const age = (job: string) => test.redis.hset(test.key(`round:${job}/r1`), 'openedAtMs', 1);

it('gives requests of a job only to workers of the kind that the job names', async () => {
  await open('plain');
  await open('loop', 'agent');
  for (const job of ['loop', undefined]) {
    expect(await jobs({ workerKind: 'other', job })).toEqual([]);
    expect(await jobs({ job: job && 'plain', workerKind: 'agent' })).toEqual(job === undefined ? ['loop', 'loop'] : []);
  }
  expect(await jobs({ job: 'loop' })).toEqual([]);
  expect(await jobs({})).toEqual(['plain', 'plain']);
  expect(await test.rounds.status(test.pool, { job: 'loop' })).toMatchObject({ workerKind: 'agent' });
  expect(await test.rounds.status(test.pool, { job: 'plain' })).not.toHaveProperty('workerKind');
});

it('gives returned requests, and requests for parked claims, to the same kind again', async () => {
  const parked = { waitMs: 60_000 };
  await claim({ ...parked, replyTo: 'any' });
  await claim({ ...parked, replyTo: 'any of its kind', workerKind: 'agent' });
  await claim({ ...parked, replyTo: 'of the job', job: 'loop' });
  await open('loop', 'agent');
  const { grants } = await test.requests.grantClaims(test.pool);
  expect(grants.map(({ replyTo }) => replyTo)).toEqual(['any of its kind']);
  const [first, second] = grants[0]!.claims;
  await test.fail(first!);
  await claim({ ...parked, replyTo: 'its kind and job', workerKind: 'agent', job: 'loop' });
  expect((await test.requests.grantClaims(test.pool)).grants).toEqual([]);
  await test.fail(second!);
  expect(await jobs({})).toEqual([]);
  expect(await jobs({ workerKind: 'agent' })).toEqual(['loop']);
});

it('lets the next round of the job name another kind', async () => {
  const { trainerEpoch, ...round } = await open('loop', 'agent');
  await test.rounds.cancel(test.pool, { ...round, trainerEpoch, mode: 'requeue', reason: 'test' });
  const more = { job: 'loop', policy: { name: 'resume', overProvision: 1 } as const, roundId: 'r2', trainerEpoch };
  await test.open({ ...more, neededGroups: 1, takeGroups: 0 });
  expect(await jobs({ workerKind: 'agent' })).toEqual([]);
  expect(await jobs({})).toEqual(['loop', 'loop']);
});

it('reports with the round that no worker of its kind claims, and the kinds there are', async () => {
  await open('loop', 'agent');
  expect(await blocked('loop'), 'workers have seconds to begin').toBeUndefined();
  await age('loop');
  const reason = { code: 'NO_WORKER_AVAILABLE', reason: 'no-worker-of-kind', workerKind: 'agent' };
  expect(await blocked('loop')).toMatchObject({ ...reason, workerKinds: [] });
  await claim({});
  await claim({ workerKind: 'other' });
  expect(await blocked('loop')).toMatchObject({ ...reason, workerKinds: ['', 'other'] });
  const { claims } = await claim({ workerKind: 'agent' });
  expect(await blocked('loop')).toBeUndefined();
  for (const one of claims) await test.fail(one);
  expect(await blocked('loop')).toBeUndefined();
  await test.workers.deregister(test.pool, test.holder);
  expect(await blocked('loop')).toMatchObject({ ...reason, workerKinds: [] });
});
