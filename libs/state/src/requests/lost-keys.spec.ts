import type { Claim, Epoch } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { LongtailStore } from '../longtail/longtail.store';
import { TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
const { redis, rounds, requests, workers } = test;
const job = 'job';
let pool: string;
let holder: { workerId: string; workerEpoch: Epoch };

beforeEach(async () => {
  await test.fresh();
  ({ pool, holder } = test);
  await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 3, roundId: 'r' });
});
afterAll(() => test.close());

const lose = (name: string) => redis.unlink(test.key(name));
const claim = (max: number) => test.claim(max);
const counts = () => test.states();
const lost = async () => (await rounds.due(pool)).lostEntries;
const listIds = (given: readonly Claim[]) => given.map(({ requestId }) => requestId);

describe('after records to which an index refers are lost, a script', () => {
  it('fails the group of a lost pending request, and grants the other requests', async () => {
    await lose('request:job/g0/1');
    expect(listIds(await claim(10))).toEqual(['job/g0/0', 'job/g1/0', 'job/g1/1', 'job/g2/0', 'job/g2/1']);
    expect(await rounds.status(pool, { job })).toMatchObject({ failedGroups: 1, shortfallGroups: 1 });
    expect(await counts()).toMatchObject({ submitted: 6, pending: 0, claimed: 4, dropped: 2 });
    expect(await lost()).toBe(1);
  });

  it('returns the other attempts of an expired worker epoch when a request is lost', async () => {
    expect(await claim(10)).toHaveLength(6);
    await lose('request:job/g1/0');
    await workers.deregister(pool, holder);
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(pool));
    expect((await rounds.due(pool)).expiredEpochs).toBe(0);
    expect(await counts()).toMatchObject({ submitted: 6, pending: 4, claimed: 0, dropped: 2 });
    expect(await lost()).toBe(1);
  });

  it('drops the requests of a lost group', async () => {
    expect(await claim(1)).toHaveLength(1);
    await lose('group:job/g0');
    expect(listIds(await claim(10))).toEqual(['job/g1/0', 'job/g1/1', 'job/g2/0', 'job/g2/1']);
    await workers.deregister(pool, holder);
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(pool));
    expect(await counts()).toMatchObject({ submitted: 6, pending: 4, claimed: 0, dropped: 2 });
    expect(await redis.keys(test.key('*:job/g0*'))).toEqual([]);
  });

  it.each(['complete', 'fail', 'save'] as const)(
    'ends the group of a request that is lost while a worker has it: %s',
    async (word) => {
      const [first, , third] = await claim(3);
      await lose('request:job/g0/0');
      await expect(word === 'save' ? test.save(first!, 1) : test[word](first!)).rejects.toMatchObject({
        code: 'REQUEST_NOT_FOUND',
      });
      expect(await rounds.status(pool, { job })).toMatchObject({ failedGroups: 1, shortfallGroups: 1 });
      const { items } = await workers.sync(pool, { ...holder, kind: 'attempts' });
      expect(items.map(({ id }) => id)).toEqual([third!.requestId]);
      expect(await counts()).toMatchObject({ submitted: 6, pending: 3, claimed: 1, dropped: 2 });
    },
  );

  it('ends the group of a lost request that its worker has forgotten', async () => {
    await claim(2);
    await lose('request:job/g0/0');
    await workers.sync(pool, { ...holder, kind: 'attempts' });
    expect((await workers.sync(pool, { ...holder, kind: 'attempts' })).items).toEqual([]);
    expect(await rounds.status(pool, { job })).toMatchObject({ failedGroups: 1, shortfallGroups: 1 });
    expect(await redis.keys(test.key('worker-attempts:*'))).toEqual([]);
  });

  it('drops a long-tail queue with a lost group', async () => {
    await redis.zadd(test.key('rounds:deadlines'), 1, 'job/r');
    await rounds.expire(pool);
    await rounds.cut(pool, { job, roundId: 'r', cursor: 0 });
    await lose('group:job/g1');
    const { trainerEpoch } = await rounds.status(pool, { job });
    const dropped = await new LongtailStore(test.runner).drop(pool, { job, trainerEpoch, reason: 'test' });
    expect(dropped).toMatchObject({ dropped: ['g0', 'g2'], requests: 4 });
    expect(await lost()).toBe(1);
    expect(await redis.keys(test.key('*:job/g1*'))).toEqual([]);
  });

  it('leaves an accepted group with a lost sample out of the results', async () => {
    for (const one of await claim(4)) await test.complete(one);
    await lose('request:job/g0/1');
    expect(await rounds.results(pool, { job, roundId: 'r', limit: 9 })).toMatchObject({
      groups: [{ groupId: 'g1' }],
      complete: false,
    });
    expect(await rounds.status(pool, { job })).toMatchObject({ acceptedGroups: 1, shortfallGroups: 1 });
  });

  it('drops the groups of a lost round', async () => {
    await lose('round:job/r');
    expect(await claim(10)).toEqual([]);
    expect(await counts()).toMatchObject({ submitted: 6, pending: 0, dropped: 6 });
    expect(await rounds.due(pool)).toMatchObject({ dropped: 3, lostEntries: 3 });
  });

  it('ends attempts of a lost round or group when their holders report', async () => {
    const [first, second, third] = await claim(3);
    await lose('round:job/r');
    for (const _ of [1, 2]) expect(await test.complete(first!)).toMatchObject({ state: 'dropped' });
    expect(await test.save(second!, 2)).toMatchObject({ action: 'abort' });
    await lose('group:job/g1');
    for (const word of [() => test.fail(third!), () => test.complete(third!)]) {
      await expect(word()).rejects.toMatchObject({ code: 'REQUEST_NOT_FOUND', field: 'requestId' });
    }
    expect(await counts()).toMatchObject({ submitted: 6, claimed: 0, running: 0, finished: 0, dropped: 4 });
  });

  it('settles a completed round without a lost group', async () => {
    await redis.zadd(test.key('rounds:deadlines'), 1, 'job/r');
    await rounds.expire(pool);
    await lose('group:job/g1');
    // A page ends at a lost group.
    expect(await rounds.cut(pool, { job, roundId: 'r', cursor: 0 })).toMatchObject({ settled: false, cursor: 0 });
    expect(await rounds.cut(pool, { job, roundId: 'r', cursor: 0 })).toMatchObject({ settled: true });
    expect(await rounds.jobStatus(pool, { job })).toMatchObject({ longtail: { groups: 2, settlingGroups: 0 } });
    expect(await redis.keys(test.key('*:job/g1*'))).toEqual([]);
    expect(await lost()).toBe(1);
  });

  it('settles a completed round with a lost sample, and stops the other attempts of its group', async () => {
    const [, , sibling] = await claim(3);
    await redis.zadd(test.key('rounds:deadlines'), 1, 'job/r');
    await rounds.expire(pool);
    await lose('request:job/g1/1');
    const { aborts } = await rounds.cut(pool, { job, roundId: 'r', cursor: 0 });
    expect(aborts.map(({ requestId }) => requestId)).toContain(sibling!.requestId);
    const stopped = { reason: 'aborted', countsAsFailure: false, retryable: true } as const;
    for (const one of aborts) await requests.fail(pool, { ...one, tokens: 0, ...stopped });
    expect(await rounds.cut(pool, { job, roundId: 'r', cursor: 0 })).toMatchObject({ settled: true });
    expect(await rounds.jobStatus(pool, { job })).toMatchObject({
      droppedGroups: 1,
      longtail: { groups: 2, settlingGroups: 0 },
    });
  });

  it('drops a group that a round discards when a sample of it that had been cut is lost', async () => {
    await test.fresh();
    ({ pool, holder } = test);
    const policy = { name: 'fixed-concurrency', concurrency: 2, overProvision: 1, onCut: 'discard' } as const;
    const round = await test.open({ policy, neededGroups: 3, minSamples: 1 });
    const [first, second] = await claim(2);
    await redis.zadd(test.key('rounds:deadlines'), 1, `${job}/${round.roundId}`);
    await rounds.expire(pool);
    await rounds.cut(pool, { ...round, cursor: 0 });
    await test.fail(second!, 1);
    await lose('request:job/g0/1');
    await test.fail(first!, 1);
    expect(await rounds.status(pool, { job })).toMatchObject({ settled: true, droppedGroups: 1 });
    expect(await rounds.jobStatus(pool, { job })).toMatchObject({
      longtail: { groups: 2, settlingGroups: 0 },
      requests: { submitted: 6, dropped: 2, unfinished: 4 },
    });
    expect(await lost()).toBe(1);
  });

  it('gives no place to a lost held group, for which the round requests a replacement', async () => {
    await test.fresh();
    ({ pool, holder } = test);
    // A group of the queue that must be taken has a place of its own.
    const policy = { name: 'resume', overProvision: 2, maxCuts: 1 } as const;
    const first = await test.open({ policy, neededGroups: 1, newGroups: 2 });
    const [cut, ...others] = await claim(3);
    await test.save(cut!, 1);
    for (const one of [...others.slice(1), ...(await claim(1))]) await test.complete(one);
    await rounds.cut(pool, { ...first, cursor: 0 });
    for (const one of [cut!, others[0]!]) await test.fail(one, 1).catch(() => undefined);
    await test.readAndClose(first);
    for await (const _ of rounds.whileMore('fold', pool, first));
    const { trainerEpoch } = first;
    await test.open({ policy, neededGroups: 2, newGroups: 2, takeGroups: 1, step: 2, trainerEpoch });
    const claims = await claim(8);
    for (const one of claims.filter(({ groupId }) => groupId !== cut!.groupId)) await test.complete(one);
    expect(await rounds.status(pool, { job })).toMatchObject({ acceptedGroups: 1, pinnedGroups: 1, heldGroups: 1 });
    await lose('group:job/g3');
    // The pinned group gives up its place, which the held group would get.
    const pinned = claims.find(({ groupId }) => groupId === cut!.groupId)!;
    await test.fail(pinned, 0, { countsAsFailure: true, retryable: false });
    expect(await rounds.status(pool, { job })).toMatchObject({
      state: 'open',
      acceptedGroups: 1,
      heldGroups: 0,
      failedGroups: 1,
      shortfallGroups: 1,
    });
    expect(await rounds.due(pool)).toMatchObject({ lostEntries: 1, miscounted: [job] });
    expect(await redis.keys(test.key('*:job/g3*'))).toEqual([]);
  });

  it('leaves a lost group out of the results of an open round, which requests a replacement', async () => {
    for (const one of await claim(4)) await test.complete(one);
    await lose('group:job/g0');
    const round = { job, roundId: 'r', limit: 9 };
    const first = await rounds.results(pool, round);
    expect(first).toMatchObject({ groups: [{ groupId: 'g1' }], complete: false });
    expect(await rounds.status(pool, { job })).toMatchObject({ state: 'open', acceptedGroups: 1, shortfallGroups: 1 });
    expect(await lost()).toBe(1);
    // Groups that were read stay read, and the next page starts after them.
    for (const one of await claim(4)) await test.complete(one);
    const second = await rounds.results(pool, { ...round, cursor: first.cursor });
    expect(second).toMatchObject({ groups: [{ groupId: 'g2' }], complete: false });
    expect(await lost()).toBe(1);
  });

  it('closes a completed round with the groups that are left', async () => {
    for (const one of await claim(6)) await test.complete(one);
    const round = { job, roundId: 'r', trainerEpoch: (await rounds.status(pool, { job })).trainerEpoch };
    const { cursor: before } = await rounds.results(pool, { ...round, limit: 9 });
    await lose('group:job/g1');
    const { groups, cursor } = await rounds.results(pool, { ...round, limit: 9 });
    expect(groups.map(({ groupId }) => groupId)).toEqual(['g0', 'g2']);
    await expect(rounds.close(pool, { ...round, cursor: before })).rejects.toMatchObject({ code: 'ROUND_MISMATCH' });
    expect(await rounds.close(pool, { ...round, cursor })).toMatchObject({ stepsTrained: 1, trainedGroups: 2 });
  });

  describe('for a completed round', () => {
    const round = { job, roundId: 'r' };
    beforeEach(async () => {
      for (const one of await claim(10)) await test.complete(one);
    });

    it.each(['group', 'request'])('folds the other groups of a closed round when a %s is lost', async (what) => {
      const { trainerEpoch } = await rounds.status(pool, { job });
      await test.readAndClose({ ...round, trainerEpoch });
      if (what === 'group') await lose('group:job/g1');
      else await lose('request:job/g1/1');
      let page = await rounds.fold(pool, round);
      for (let pages = 1; page.more && pages < 9; pages++) page = await rounds.fold(pool, round);
      expect(page).toEqual({ more: false });
      expect(await counts()).toMatchObject({ submitted: 6, finished: 0, trained: 6, dropped: 0 });
      expect(await redis.keys(test.key('*:job/g*'))).toEqual([]);
      expect((await rounds.due(pool)).rounds).toEqual([]);
    });

    it('gives back the other groups of a cancelled round, and takes the other groups of the queue', async () => {
      await lose('group:job/g0');
      const { trainerEpoch } = await rounds.status(pool, { job });
      await rounds.cancel(pool, { ...round, trainerEpoch, mode: 'requeue', reason: 'test' });
      for await (const _ of rounds.whileMore('giveBack', pool, round));
      expect(await rounds.jobStatus(pool, { job })).toMatchObject({ longtail: { groups: 2, settlingGroups: 0 } });
      expect(await redis.keys(test.key('*:job/g0*'))).toEqual([]);
      await lose('group:job/g1');
      const policy = { name: 'resume', overProvision: 1, shortfall: 'accept-fewer' } as const;
      await test.open({ policy, neededGroups: 2, newGroups: 0, takeGroups: 2, roundId: 'again' });
      expect(await rounds.status(pool, { job })).toMatchObject({ state: 'completed', acceptedGroups: 1 });
      expect(await lost()).toBe(2);
    });
  });

  it('answers the parked claims after a lost one', async () => {
    await lose('job-pending:job');
    const parked = { waitMs: 30_000, max: 2, ...holder };
    for (const name of ['first', 'second']) {
      await requests.claim(pool, { claimId: name, replyTo: `inbox.${name}`, ...parked });
    }
    await redis.hdel(test.key('waiters:claim'), 'first');
    await redis.zadd(test.key('job-pending:job'), 1, 'job/g0/0');
    await redis.zadd(test.key('jobs:claimable'), 1, job);
    const { grants } = await requests.grantClaims(pool);
    expect(grants.map(({ replyTo, claims: given }) => [replyTo, listIds(given)])).toEqual([
      ['inbox.second', ['job/g0/0']],
    ]);
    expect(await requests.expireClaims(pool)).toEqual({ replyTo: [], more: false });
  });
});
