import type { TailPolicy } from '@broomwagon/contracts';
import { openPayloadStore, type PayloadStore } from '@broomwagon/state';
import { testRedisUrl, waitUntil } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };
let fixture: CoordinatorFixture;
let payloads: PayloadStore;

beforeAll(async () => {
  fixture = await CoordinatorFixture.start();
  const [keyPrefix] = fixture.rootKey.split(':') as [string];
  payloads = await openPayloadStore({ driver: 'redis', url: testRedisUrl(), dir: '', keyPrefix });
});
afterAll(async () => {
  await payloads.close();
  await fixture.stop();
});
beforeEach(() => fixture.freshPool());

const call: CoordinatorFixture['client']['call'] = (...args) => fixture.client.call(...args);
/** Keys of the pool, and of payloads, that name the job. */
const listKeys = async (job: string) => {
  const keys = await fixture.redis.keys(`*${fixture.pool}*`);
  return keys.filter((key) => new RegExp(`[:/]${job}([/}~]|$)`).test(key));
};

describe('job.delete', () => {
  it('refuses a job in use, deletes it with all it has by force, and leaves its neighbours alone', async () => {
    const { pool } = fixture;
    const { job, round } = await fixture.openRound(WAIT, 4);
    const neighbour = `${job}0`;
    await fixture.open(neighbour, { groupsPerStep: 1, remainingGroups: 1, policy: WAIT });
    await call(pool, 'job.configure', { job, quota: { weight: 3 } });
    await call(pool, 'round.submit', { ...round, groups: groups(4) });
    const worker = await fixture.worker('w');
    const claims = await worker.claim(5);
    for (const claim of claims.slice(0, 3)) await worker.complete(claim);
    await expect(call(pool, 'job.delete', { job })).rejects.toMatchObject({
      code: 'JOB_IN_USE',
      field: 'job',
      message: expect.stringContaining(`Round ${round.roundId} of the job is open`),
    });
    expect(await call(pool, 'job.delete', { job, force: true })).toEqual({ job, state: 'deleting' });
    await expect(call(pool, 'round.submit', { ...round, groups: groups(1, 9) })).rejects.toMatchObject({
      code: 'FENCED',
    });
    // The workers of the job confirm that they have stopped.
    for (const claim of claims.slice(3)) {
      await call(pool, 'request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true });
    }
    await waitUntil(async () => (await call(pool, 'job.delete', { job, force: true })).state === 'deleted', {
      what: 'the job to be deleted',
      timeoutMs: 20_000,
    });
    expect(await listKeys(job)).toEqual([]);
    expect(await payloads.usage({ pool, job })).toMatchObject({ usedBytes: 0 });
    expect(await call(pool, 'job.delete', { job })).toEqual({ job, state: 'deleted' });
    await expect(call(pool, 'job.status', { job })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    expect((await call(pool, 'job.list', {})).jobs).toEqual([neighbour]);
    expect(await call(pool, 'job.status', { job: neighbour })).toMatchObject({ openRoundId: 'round-1' });
    await call(pool, 'longtail.list', { job: neighbour });
    // The name is free again, and the sweep finds no trace of the deleted job.
    await fixture.open(job, { groupsPerStep: 1, remainingGroups: 1, policy: WAIT });
    await fixture.swept();
  });

  it('finishes a deletion that a dead process has started, and opens no round meanwhile', async () => {
    const { pool } = fixture;
    const { job, round } = await fixture.openRound(WAIT, 1);
    await call(pool, 'round.cancel', { ...round, mode: 'drop', reason: 'test' });
    await fixture.swept();
    await fixture.redis.hset(`${fixture.rootKey}:job:${job}`, 'deleting', '1');
    const open = fixture.open(job, { groupsPerStep: 1, remainingGroups: 1, policy: WAIT });
    await expect(open).rejects.toMatchObject({ code: 'JOB_IN_USE' });
    expect(await call(pool, 'job.delete', { job })).toEqual({ job, state: 'deleted' });
    expect(await listKeys(job)).toEqual([]);
  });

  it('ends the sessions of the job, also of a job that has opened no round', async () => {
    const { pool, redis, rootKey } = fixture;
    const { job, round } = await fixture.openRound(WAIT, 1);
    await call(pool, 'round.cancel', { ...round, mode: 'drop', reason: 'test' });
    await fixture.swept();
    for (const name of [job, `${job}-other`, 'of-clients']) {
      await redis.hset(`${rootKey}:sessions`, `${name}/g/0`, 'server|epoch|0|0|');
    }
    const sessions = async () => (await redis.hkeys(`${rootKey}:sessions`)).sort();
    expect(await call(pool, 'job.delete', { job })).toEqual({ job, state: 'deleted' });
    expect(await sessions()).toEqual([`${job}-other/g/0`, 'of-clients/g/0'].sort());
    expect(await call(pool, 'job.delete', { job: 'of-clients' })).toMatchObject({ state: 'deleted' });
    expect(await sessions()).toEqual([`${job}-other/g/0`]);
    await call(pool, 'job.delete', { job: `${job}-other` });
  });

  it('lists jobs that were idle for long, and no others', async () => {
    const { pool } = fixture;
    const idle = await fixture.openRound(WAIT, 1);
    const open = await fixture.openRound(WAIT, 1);
    await call(pool, 'round.cancel', { ...idle.round, mode: 'drop', reason: 'test' });
    const listJobNames = async (idleBeforeMs: number) => {
      const names = [];
      for await (const { jobs } of fixture.rounds.pages('listJobs', pool, { idleBeforeMs })) names.push(...jobs);
      return names;
    };
    expect(await listJobNames(Date.now() - 60_000)).toEqual([]);
    expect(await listJobNames(Date.now() + 60_000)).toEqual([idle.job]);
    expect((await call(pool, 'job.list', {})).jobs).toContain(open.job);
  });
});

describe('pool.delete', () => {
  it('refuses a pool in use and names its users, then deletes it with its jobs and payloads', async () => {
    const { pool } = fixture;
    const { job, round } = await fixture.openRound(WAIT, 1);
    await call(pool, 'round.submit', { ...round, groups: groups(1) });
    const { workerId, workerEpoch } = await fixture.worker('w');
    await expect(call(pool, 'pool.delete', {})).rejects.toMatchObject({
      code: 'POOL_IN_USE',
      details: { inUse: ['live workers', 'open rounds'] },
    });
    await call(pool, 'round.cancel', { ...round, mode: 'drop', reason: 'test' });
    await fixture.workers.deregister(pool, { workerId, workerEpoch });
    expect(await call(pool, 'pool.delete', {})).toEqual({ pool, jobs: 1 });
    expect(await listKeys(job)).toEqual([]);
    const left = await fixture.redis.keys(`${fixture.rootKey}:*`);
    // Keys that the periodic tasks of this pool, which is named in POOLS, write again.
    expect(left.filter((key) => !/:(meta|events|eventsRelay)$/.test(key))).toEqual([]);
    expect(await call(pool, 'pool.delete', { force: true })).toEqual({ pool, jobs: 0 });
  });
});
