import type { Claim, RequestCounts, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { PoolAudit } from '../audit';
import { InspectionStore } from '../inspection/inspection.store';
import { LedgerStore } from '../ledger';
import { KeySnapshot } from './key-snapshot.fixture';
import { TestPools } from './test-pools.fixture';

const test = new TestPools();
const { redis, rounds } = test;
const audit = new PoolAudit(redis, test.runner);
const inspection = new InspectionStore(test.runner);
const ledgers = new LedgerStore(test.runner);
const job = 'job';
const policy: TailPolicy = { name: 'resume', overProvision: 2, shortfall: 'accept-fewer' };
type Round = Awaited<ReturnType<TestPools['open']>>;

beforeEach(() => test.fresh());
afterAll(() => test.close());

const snapshot = () => KeySnapshot.of(redis, test.key(''));
const ofGroups = (claims: readonly Claim[], ...groupIds: string[]) =>
  claims.filter(({ groupId }) => groupIds.includes(groupId));
async function finish(claims: readonly Claim[]): Promise<void> {
  for (const claim of claims) await test.complete(claim);
}
const trained = (groupIds: readonly string[]) => groupIds.map((groupId) => ({ groupId, samples: 2 }));
/** Reconciles as a trainer does after GENERATION_CHANGED. */
async function reconcile(step: number, groupIds: readonly string[], askedIds: readonly string[] = []) {
  const { trainerEpoch } = await rounds.takeover(test.pool, { job, takeoverId: test.unique('takeover') });
  const args = { job, trainerEpoch, step, groups: trained(groupIds), isLast: true, groupIds: askedIds };
  const answer = await rounds.reconcile(test.pool, args);
  expect(await rounds.reconcile(test.pool, args)).toMatchObject({ countedGroups: 0, unknown: answer.unknown });
  await sweep(answer.cancelledRoundId);
  return answer;
}
async function sweep(roundId: string | undefined): Promise<void> {
  if (roundId === undefined) return;
  for (let more = true; more;) ({ more } = await rounds.giveBack(test.pool, { job, roundId }));
  for (const one of (await rounds.cut(test.pool, { job, roundId, cursor: 0 })).aborts) {
    await test.requests.fail(test.pool, {
      ...one,
      tokens: 0,
      reason: 'aborted',
      countsAsFailure: false,
      retryable: true,
    });
  }
  await rounds.fold(test.pool, { job, roundId });
}
/** Expects counts that add up and equal the expected ones. */
async function expectCounts(expected: Partial<RequestCounts>): Promise<void> {
  const { submitted, ...states } = await test.states();
  expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(submitted);
  expect({ submitted, ...states }).toMatchObject(expected);
  expect((await audit.run(test.pool)).findings).toEqual([]);
  expect((await rounds.due(test.pool)).miscounted).toEqual([]);
  // The ledger counts every trained sample and group, by its length or as reconciled.
  const { counters } = await ledgers.read(test.pool, { job });
  const groups = Object.entries(counters).filter(([name]) => name.startsWith('groups.cuts.'));
  const count = (name: string) => counters[name] ?? 0;
  expect(count('trained.samples') + count('reconciled.samples')).toBe(states.trained);
  expect(groups.reduce((sum, [, cut]) => sum + cut, count('reconciled.groups'))).toBe(
    (await rounds.jobStatus(test.pool, { job })).trainedGroups,
  );
}
/** Trains the remaining groups in rounds from the queue. @returns ids of the trained groups, with repeats */
async function trainRest(trainerEpoch: Round['trainerEpoch'], first: number): Promise<string[]> {
  const groups: string[] = [];
  for (let step = first; ; step++) {
    const { longtailGroups, openRoundId } = await rounds.progress(test.pool, { job });
    expect(openRoundId).toBeUndefined();
    if (longtailGroups === 0) return groups.sort();
    const takeGroups = Math.min(2, longtailGroups);
    const round = await test.open({ policy, neededGroups: takeGroups, newGroups: 0, takeGroups, step, trainerEpoch });
    for (let claims = await test.claim(); claims.length > 0; claims = await test.claim()) await finish(claims);
    groups.push(...(await rounds.results(test.pool, { ...round, limit: 128 })).groups.map(({ groupId }) => groupId));
    await test.readAndClose(round);
    for await (const _ of rounds.whileMore('fold', test.pool, round));
  }
}

describe('a step that the trainer has trained and Redis has lost', () => {
  /** States of the groups of the step when Redis was set back: pending, held by a worker, or mixed. */
  const stages: [string, (claims: Claim[]) => Promise<unknown>][] = [
    ['pending', async (claims) => Promise.all(claims.map((claim) => test.fail(claim)))],
    ['claimed', async () => undefined],
    ['running', async (claims) => Promise.all(claims.map((claim) => test.save(claim, 1)))],
    ['partly finished', async (claims) => finish([claims[0]!, claims[2]!])],
    ['accepted', async (claims) => finish(ofGroups(claims, 'g0'))],
    ['accepted otherwise', async (claims) => finish(ofGroups(claims, 'g2', 'g3'))],
  ];
  it.each(stages)('counts once, its groups %s', async (_, before) => {
    const round = await test.open({ policy, neededGroups: 2, newGroups: 4 });
    const claims = await test.claim();
    await before(claims);
    const earlier = await snapshot();
    // The following is lost: g0 and g1 are accepted and trained.
    for (const claim of await test.claim()) await test.complete(claim);
    await earlier.restore();

    const { cancelledRoundId, countedGroups, stepsTrained } = await reconcile(1, ['g0', 'g1']);
    expect({ cancelledRoundId, countedGroups, stepsTrained }).toEqual({
      cancelledRoundId: round.roundId,
      countedGroups: 2,
      stepsTrained: 1,
    });
    await expectCounts({ submitted: 8, trained: 4, claimed: 0, running: 0, cutting: 0, pending: 0 });
    const { trainerEpoch } = await rounds.takeover(test.pool, { job, takeoverId: 'rest' });
    expect(await trainRest(trainerEpoch, 2)).toEqual(['g2', 'g3']);
    await expectCounts({ submitted: 8, trained: 8 });
  });

  it('counts once when it was never submitted, and other unknown groups are reported', async () => {
    const empty = await test.open({ policy, neededGroups: 1, newGroups: 1 });
    const claims = await test.claim();
    await finish(claims);
    await test.readAndClose(empty);
    for await (const _ of rounds.whileMore('fold', test.pool, empty));
    const earlier = await snapshot();
    const lost = await test.open({ policy, neededGroups: 2, newGroups: 3, step: 2, trainerEpoch: empty.trainerEpoch });
    await finish(ofGroups(await test.claim(), 'g1', 'g2'));
    await test.readAndClose(lost);
    await earlier.restore();

    const answer = await reconcile(2, ['g1', 'g2'], ['g0', 'g1', 'g2', 'g3']);
    expect(answer).toMatchObject({ stepsTrained: 2, submittedGroups: 3, countedGroups: 2, unknown: ['g3'] });
    await expectCounts({ submitted: 6, trained: 6 });
    const again = { groupId: 'g1', digest: 'd', samples: 2, maxTokens: 9, promptRef: 'p', sampling: '{}' };
    const round = await test.open({
      policy,
      neededGroups: 1,
      newGroups: 1,
      step: 3,
      trainerEpoch: answer.trainerEpoch,
    });
    await expect(rounds.submit(test.pool, round, [again])).rejects.toMatchObject({ code: 'DUPLICATE_GROUP' });
  });

  it('counts once when its groups are in the long-tail queue or have failed since', async () => {
    const round = await test.open({ policy, neededGroups: 3, newGroups: 5 });
    const claims = await test.claim(10);
    const refused = { countsAsFailure: true, retryable: false };
    await test.fail(ofGroups(claims, 'g0')[0]!, 0, refused);
    await redis.zadd(test.key('rounds:deadlines'), 1, `job/${round.roundId}`);
    await finish(ofGroups(claims, 'g1'));
    await rounds.expire(test.pool);
    for (const one of (await rounds.cut(test.pool, { ...round, cursor: 0 })).aborts) {
      await test.requests.fail(test.pool, {
        ...one,
        tokens: 0,
        reason: 'aborted',
        countsAsFailure: false,
        retryable: true,
      });
    }
    expect(await rounds.jobStatus(test.pool, { job })).toMatchObject({ failedGroups: 1, longtail: { groups: 3 } });
    await reconcile(1, ['g0', 'g1', 'g2']);
    expect(await rounds.jobStatus(test.pool, { job })).toMatchObject({ failedGroups: 0, trainedGroups: 3 });
    await expectCounts({ submitted: 10, trained: 6, failed: 0, dropped: 0, unfinished: 4 });
  });

  it('leaves a round of a later step as it is', async () => {
    const round = await test.open({ policy, neededGroups: 2, newGroups: 4 });
    const { trainerEpoch } = round;
    const args = { job, trainerEpoch, groups: [], isLast: false, groupIds: ['g0', 'g9'] };
    expect(await rounds.reconcile(test.pool, args)).toMatchObject({ unknown: ['g9'], openRoundId: 'r1' });
    expect(await rounds.status(test.pool, { job })).toMatchObject({ state: 'open' });
  });

  it('creates the job again if Redis has lost it', async () => {
    const round = await test.open({ policy, neededGroups: 1, newGroups: 2 });
    await redis.del(...(await redis.keys(test.key('*job*'))));
    // A late count of the lost job does not create the job.
    await redis.hset(test.key(`job:${job}`), 'droppedGroups', 1);
    const args = { job, takeoverId: 'one', step: 1, groups: trained(['g0']), isLast: true, groupIds: ['g1'] };
    await expect(rounds.reconcile(test.pool, { ...args, trainerEpoch: round.trainerEpoch })).rejects.toMatchObject({
      code: 'JOB_NOT_FOUND',
    });
    const looks = (roundId?: string) => [
      () => rounds.status(test.pool, { job, roundId }),
      () => inspection.groups(test.pool, { job, roundId }),
      () => inspection.requests(test.pool, { job, roundId }),
    ];
    for (const look of looks()) await expect(look()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    const made = await rounds.reconcile(test.pool, args);
    expect(made).toMatchObject({ stepsTrained: 1, countedGroups: 1, unknown: ['g1'] });
    expect(made.trainerEpoch).not.toBe(round.trainerEpoch);
    // The trainer may still read a lost round.
    const noRound = { code: 'ROUND_NOT_FOUND', field: 'roundId' };
    for (const look of [...looks(round.roundId), ...looks()]) await expect(look()).rejects.toMatchObject(noRound);
    // A repeat is the same trainer, and so is its late takeover. Another trainer must take the job over first.
    expect(await rounds.reconcile(test.pool, args)).toEqual({ ...made, countedGroups: 0, stamp: expect.any(String) });
    expect(await rounds.takeover(test.pool, { job, takeoverId: 'one' })).toMatchObject({
      trainerEpoch: made.trainerEpoch,
    });
    const fenced = { code: 'FENCED' };
    await expect(rounds.reconcile(test.pool, { ...args, takeoverId: 'two' })).rejects.toMatchObject(fenced);
    const second = await rounds.takeover(test.pool, { job, takeoverId: 'two' });
    await expect(rounds.reconcile(test.pool, args)).rejects.toMatchObject(fenced);
    expect(await rounds.reconcile(test.pool, { ...args, takeoverId: 'two' })).toMatchObject({
      trainerEpoch: second.trainerEpoch,
    });
    await expectCounts({ submitted: 2, trained: 2 });
  });
});

describe('a worker that reports after its trainer has reconciled', () => {
  it('changes nothing, and is told to stop', async () => {
    await test.open({ policy, neededGroups: 1, newGroups: 2 });
    const claims = await test.claim();
    const { trainerEpoch } = await rounds.takeover(test.pool, { job, takeoverId: 'again' });
    const args = { job, trainerEpoch, step: 1, groups: trained(['g0']), isLast: true, groupIds: [] };
    const { aborts } = await rounds.reconcile(test.pool, args);
    expect(aborts.map(({ requestId }) => requestId).sort()).toEqual(['job/g0/0', 'job/g0/1']);
    for (const claim of ofGroups(claims, 'g0')) {
      await expect(test.complete(claim)).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
    }
    expect(await test.states()).toMatchObject({ trained: 2, finished: 0 });
  });
});
