import type { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { listPrimaries } from '../redis-cluster';
import { TestPools } from '../rounds/test-pools.fixture';
import { JobRecounts } from './job-recounts';
import { PoolAudit } from './pool-audit';

/** How often counts are damaged under load. Each time another state is damaged, and the audit has more to read. */
const LOOKS = inject('runsFactor') === 1 ? 12 : 30;

const test = new TestPools();
const { redis, rounds } = test;
const audit = new PoolAudit(redis, test.runner);
const job = 'job';
let round: Awaited<ReturnType<TestPools['open']>>;

beforeEach(async () => {
  await test.fresh();
  round = await test.open({ policy: { name: 'resume', overProvision: 2 }, neededGroups: 1, newGroups: 2 });
});
afterAll(() => test.close());

const miscounted = async () => (await rounds.due(test.pool)).miscounted;

/** Count that is set to an impossible value, how it is set, and a transition that reads it. */
const cases: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
  ['requests of a state', () => redis.hset(test.key('job-counts:job'), 'pending', 0), () => test.claim(1)],
  [
    'live requests of a group',
    () => redis.hset(test.key('group:job/g0'), 'live', 0),
    async () => test.complete((await test.claim(1))[0]!),
  ],
  [
    'live groups of a round',
    () => redis.hset(test.key('round:job/r1'), 'liveGroups', 0),
    async () => {
      for (const claim of await test.claim(2)) await test.complete(claim);
    },
  ],
  [
    'groups on their way to the queue',
    () => redis.hset(test.key('job:job'), 'settlingGroups', -5),
    async () => {
      await redis.zadd(test.key('rounds:deadlines'), 1, 'job/r1');
      await rounds.expire(test.pool);
    },
  ],
];

describe('a count below zero', () => {
  it.each(cases)('of %s marks its job, which is counted anew', async (_, damage, meet) => {
    expect(await miscounted()).toEqual([]);
    await damage();
    await meet();
    expect(await miscounted()).toEqual([job]);
    expect((await rounds.due(test.pool)).miscounts).toBeGreaterThan(0);
    const { mended, again } = await audit.recount(test.pool, [job]);
    expect([mended.length > 0, again]).toEqual([true, []]);
    expect(await miscounted()).toEqual([]);
    expect((await audit.run(test.pool)).findings).toEqual([]);
    // The round goes on to its end.
    for (const claim of await test.claim()) await test.complete(claim);
    for (const one of (await rounds.cut(test.pool, { ...round, cursor: 0 })).aborts) {
      await test.requests.fail(test.pool, {
        ...one,
        tokens: 0,
        reason: 'aborted',
        countsAsFailure: false,
        retryable: true,
      });
    }
    expect(await rounds.status(test.pool, { job })).toMatchObject({ state: 'completed', settled: true });
    expect((await audit.run(test.pool)).findings).toEqual([]);
  });

  it('is mended while requests move, are submitted and are folded', async () => {
    for (const claim of await test.claim()) await test.complete(claim);
    await test.readAndClose(round);
    round = await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 2, step: 2 });
    const traffic = { busy: true };
    const work = async () => {
      for (let step = 3; traffic.busy; step++) {
        const claims = await test.claim();
        await test.fail(claims[0]!);
        for (const claim of [...claims.slice(1), ...(await test.claim())]) await test.complete(claim);
        await test.readAndClose(round);
        for await (const _ of rounds.whileMore('fold', test.pool, round));
        round = await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 2, step });
      }
    };
    const working = work();
    for (let looks = 0; looks < LOOKS; looks++) {
      await redis.hincrby(test.key('job-counts:job'), ['finished', 'running', 'pending'][looks % 3]!, -1_000);
      await audit.recount(test.pool, [job]);
      const { submitted, ...states } = await test.states();
      expect(Math.min(...Object.values(states))).toBeGreaterThanOrEqual(0);
      expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(submitted);
    }
    traffic.busy = false;
    await working;
    expect((await audit.run(test.pool)).findings).toEqual([]);
  });

  describe('met by a recount that is under way', () => {
    const recounts = new JobRecounts(redis, test.runner);

    it('marks the job once more', async () => {
      const { end } = await recounts.count(test.pool, [job]);
      await redis.unlink(test.key('request:job/g0/0'));
      await test.claim(1);
      expect(await miscounted()).toEqual([job]);
      expect(await end(job)).toBe(false);
      expect(await miscounted()).toEqual([job]);
      expect(await audit.recount(test.pool, [job])).toMatchObject({ again: [] });
      expect(await miscounted()).toEqual([]);
      expect((await audit.run(test.pool)).findings).toEqual([]);
    });

    it('keeps the mark until all of the job was checked', async () => {
      await redis.sadd(test.key('jobs:miscounted'), job);
      await recounts.count(test.pool, [job]);
      expect(await miscounted()).toEqual([job]);
    });

    const setBack = () => redis.hset(test.key('meta'), 'generationOf', 'of another process');

    it('is given up when Redis is set back while keys are read', async () => {
      await redis.sadd(test.key('jobs:miscounted'), job);
      await redis.hset(test.key('job-counts:job'), 'pending', 77);
      const meddled = Object.create(listPrimaries(redis)[0]!) as Redis;
      meddled.scanStream = (options) => {
        void setBack();
        return listPrimaries(redis)[0]!.scanStream(options);
      };
      const { counted, end } = await new JobRecounts(meddled, test.runner).count(test.pool, [job]);
      expect([await end(job), counted.get(job)]).toMatchObject([false, { isProven: false, mended: false }]);
      expect(await test.states()).toMatchObject({ pending: 77 });
      expect(await audit.recount(test.pool, [job])).toMatchObject({ again: [] });
      expect([await test.states(), await miscounted()]).toMatchObject([{ pending: 4 }, []]);
    });

    it('leaves the mark when Redis is set back before its end', async () => {
      await redis.sadd(test.key('jobs:miscounted'), job);
      const { end } = await recounts.count(test.pool, [job]);
      await setBack();
      expect(await end(job)).toBe(false);
      expect(await miscounted()).toEqual([job]);
    });

    it('counts many jobs in one scan', async () => {
      await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 2, job: 'other' });
      for (const name of [job, 'other']) await redis.hset(test.key(`job-counts:${name}`), 'pending', 77);
      expect(await audit.recount(test.pool, [job, 'other'])).toMatchObject({ again: [] });
      expect([await test.states(), await test.states('other')]).toMatchObject([{ pending: 4 }, { pending: 4 }]);
    });
  });

  it('of an idle job is found once after Redis has lost writes', async () => {
    const { uncheckedGeneration } = await rounds.due(test.pool);
    await audit.markCounts(test.pool, uncheckedGeneration!);
    await audit.recount(test.pool, [job]);
    expect(await rounds.due(test.pool)).toMatchObject({ miscounted: [] });
    // Counts that add up can still be wrong.
    await redis.hincrby(test.key('job-counts:job'), 'pending', -1);
    await redis.hincrby(test.key('job-counts:job'), 'trained', 1);
    await redis.hset(test.key('meta'), 'generationOf', 'of another process');
    const due = await rounds.due(test.pool);
    expect(due.uncheckedGeneration).not.toBe(uncheckedGeneration);
    await audit.markCounts(test.pool, due.uncheckedGeneration!);
    expect(await rounds.due(test.pool)).toMatchObject({ miscounted: [job] });
    expect((await rounds.due(test.pool)).uncheckedGeneration).toBeUndefined();
    await audit.recount(test.pool, [job]);
    expect(await test.states()).toMatchObject({ pending: 4 });
  });
});
