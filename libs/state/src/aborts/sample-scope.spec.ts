import type { Claim } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { LongtailStore } from '../longtail/longtail.store';
import { buildSegment, TestPools, type TestRound } from '../rounds/test-pools.fixture';
import { AbortStore } from './abort.store';
import type { AbortSelector } from './abort.store';

const test = new TestPools();
const { rounds, requests, workers } = test;
const aborts = new AbortStore(test.runner);
const longtail = new LongtailStore(test.runner);
const job = 'job';
const LOOK = {};

beforeEach(() => test.fresh());
afterAll(() => test.close());

const open = (extra: Partial<TestRound> = {}) =>
  test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 1, samples: 3, minSamples: 2, ...extra });
async function abort(selector: AbortSelector, abortId = test.unique('a')) {
  await aborts.begin(test.pool, { abortId, selector, reason: 'test', keptMs: 600_000 });
  const told = [];
  for (let more = true; more;) {
    const page = await aborts.select(test.pool, { abortId });
    told.push(...page.aborts);
    ({ more } = page);
  }
  return { abortId, told: told.map(({ requestId }) => requestId) };
}
const alone = ({ requestId }: Pick<Claim, 'requestId'>) => abort({ requestIds: [requestId], scope: 'sample' });
const readResults = async (abortId: string) =>
  (await aborts.results(test.pool, { abortId, cursor: 0, limit: 128 })).results;
const status = () => rounds.status(test.pool, { job });
const timeOut = (claim: Claim, tokens: number) =>
  requests.fail(test.pool, {
    ...test.fence(claim),
    ...buildSegment(claim, tokens),
    countsAsFailure: false,
    retryable: false,
    reason: 'timeout',
  });

describe('an abort of one sample', () => {
  it('ends that sample with its tokens, and its group is trained with the others', async () => {
    const round = await open();
    const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
    await test.save(second, 4);
    const { abortId, told } = await alone(second);
    expect(told).toEqual([second.requestId]);
    expect(await readResults(abortId)).toEqual([{ requestId: second.requestId, outcome: 'aborting' }]);
    // Only this abort is sent again, until its holder confirms.
    const repeat = async () =>
      (await aborts.repeat(test.pool, { ...LOOK, deadlineMs: 60_000 })).aborts.map(({ requestId }) => requestId);
    expect(await repeat()).toEqual([second.requestId]);
    expect(await test.save(first, 1)).toMatchObject({ action: 'continue' });
    expect(await test.save(second, 5)).toMatchObject({ action: 'abort' });
    // The abort wins over a later completion.
    expect(await test.complete(second, 6)).toMatchObject({ state: 'dropped', groupAccepted: false });
    expect(await repeat()).toEqual([]);
    expect(await rounds.due(test.pool)).toMatchObject({ aborting: 0 });
    expect(await readResults(abortId)).toMatchObject([{ outcome: 'aborted', tokenCount: 6, segments: [{}] }]);

    await test.complete(first, 2);
    expect(await test.complete(third, 3)).toMatchObject({ groupAccepted: true, roundCompleted: true });
    expect(await status()).toMatchObject({ droppedGroups: 0, wastedByReason: { aborted: 6 }, acceptedGroups: 1 });
    const { groups } = await rounds.results(test.pool, { ...round, limit: 8 });
    expect(groups[0]!.samples.map(({ sampleIndex, tokenCount }) => [sampleIndex, tokenCount])).toEqual([
      [0, 2],
      [2, 3],
    ]);
    expect(await test.readAndClose(round)).toMatchObject({ trainedGroups: 1, trainedRequests: 2 });
    for await (const _ of rounds.whileMore('fold', test.pool, round));
    expect(await test.states()).toMatchObject({ submitted: 3, trained: 2, dropped: 1, finished: 0 });
  });

  it('accepts the group at once when its other samples are finished', async () => {
    const round = await open();
    const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
    await test.complete(first);
    await test.complete(second);
    expect((await status()).state).toBe('open');
    expect((await alone(third)).told).toEqual([third.requestId]);
    expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 1 });
    // The group is folded only when the holder has confirmed; then a sweep finds no abort of it.
    await test.readAndClose(round);
    expect(await rounds.fold(test.pool, round)).toEqual({ more: false });
    await test.fail(third, 5);
    for await (const _ of rounds.whileMore('fold', test.pool, round));
    expect(await aborts.repeat(test.pool, { ...LOOK, deadlineMs: 0 })).toMatchObject({ aborts: [], overdue: [] });
    expect(await rounds.due(test.pool)).toMatchObject({ aborting: 0 });
    expect(await test.states()).toMatchObject({ submitted: 3, trained: 2, dropped: 1 });
  });

  it('drops the group when too few samples are left: by default, after the first abort', async () => {
    await open({ samples: 2, minSamples: undefined });
    const [first, second] = (await test.claim(2)) as [Claim, Claim];
    expect((await alone(first)).told.toSorted()).toEqual([first.requestId, second.requestId]);
    expect(await status()).toMatchObject({ droppedGroups: 1, shortfallGroups: 1 });
  });

  it('takes a surplus sample in place of the aborted sample', async () => {
    await open({
      samples: 2,
      minSamples: undefined,
      policy: { name: 'resume', overProvision: 1, sampleOverProvision: 1.5 },
    });
    const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
    await alone(first);
    await test.fail(first, 1);
    await test.complete(second);
    expect(await test.complete(third)).toMatchObject({ groupAccepted: true });
  });

  it.each([
    ['sample', undefined, 0],
    ['group', undefined, 1],
    [undefined, undefined, 1],
    ['sample', 'group', 1],
    ['group', 'sample', 0],
  ] as const)(
    'in a round of scope %s, named %s, drops %i groups; before its submit too',
    async (abortScope, scope, dropped) => {
      await abort({ requestIds: ['job/g0/2'], scope });
      await open({ neededGroups: 2, abortScope });
      const early = (await status()).droppedGroups;
      await abort({ requestIds: ['job/g1/2'], scope });
      expect([early, (await status()).droppedGroups]).toEqual([dropped, 2 * dropped]);
      expect((await test.claim(8)).length).toBe(4 * (1 - dropped));
    },
  );

  it('ends samples of a dead worker, and samples that a live worker does not confirm in time', async () => {
    await open({ minSamples: 1 });
    const [first, second] = (await test.claim(3)) as [Claim, Claim, Claim];
    await test.save(second, 5);
    const { abortId } = await alone(second);
    const { overdue } = await aborts.repeat(test.pool, { ...LOOK, deadlineMs: -1 });
    expect(overdue).toEqual([{ requestId: second.requestId, attempt: second.attempt }]);
    const attempts = overdue.map((one) => ({ ...one, fenced: true }));
    expect(await aborts.endOverdue(test.pool, { attempts, leaseIds: [] })).toMatchObject({ ended: 1 });
    expect(await readResults(abortId)).toMatchObject([{ outcome: 'aborted', tokenCount: 5, fenced: true }]);
    await alone(first);
    await workers.deregister(test.pool, test.holder);
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(test.pool));
    expect(await test.states()).toMatchObject({ dropped: 2, pending: 1, cutting: 0 });
  });

  it('ends a sample of the long-tail queue, and its group goes first when no other sample is missing', async () => {
    await open({ neededGroups: 2, policy: { name: 'resume', overProvision: 1, deadlineMs: 1 } });
    const claims = await test.claim(6);
    const second = claims.filter(({ groupId }) => groupId === 'g1');
    await test.complete(second[0]!);
    await test.complete(second[1]!);
    await expect.poll(async () => (await rounds.expire(test.pool)).rounds).toHaveLength(1);
    await rounds.cut(test.pool, { job, roundId: 'r1', cursor: 0 });
    for (const claim of claims) if (!second.slice(0, 2).includes(claim)) await test.fail(claim, 2);
    const queue = async () =>
      (await rounds.listLongtail(test.pool, { job, cursor: 0 })).groups.map(({ groupId }) => groupId);
    expect(await queue()).toEqual(['g0', 'g1']);
    await alone(second[2]!);
    expect(await queue()).toEqual(['g1', 'g0']);
    expect(await test.states()).toMatchObject({ submitted: 6, finished: 2, dropped: 1, unfinished: 3 });
  });

  it('is not undone by the cut of its round when its holder is dead', async () => {
    await open({ policy: { name: 'resume', overProvision: 1, deadlineMs: 1 } });
    const [, second] = (await test.claim(3)) as [Claim, Claim, Claim];
    await alone(second);
    await expect.poll(async () => (await rounds.expire(test.pool)).rounds).toHaveLength(1);
    await workers.deregister(test.pool, test.holder);
    await rounds.cut(test.pool, { job, roundId: 'r1', cursor: 0 });
    expect(await test.states()).toMatchObject({ submitted: 3, dropped: 1, unfinished: 2 });
  });

  it('is not undone when the holder requeues the sample', async () => {
    await open();
    const [first, second] = (await test.claim(3)) as [Claim, Claim, Claim];
    await alone(second);
    const args = { ...test.fence(second), ...buildSegment(second, 3) };
    expect(await longtail.requeue(test.pool, args)).toMatchObject({ state: 'dropped', aborts: [] });
    expect(await test.save(first, 1)).toMatchObject({ action: 'continue' });
  });
});

describe('a sample that exceeds its timeout', () => {
  it('ends alone in a round of scope sample, counted as timeout', async () => {
    await open({ abortScope: 'sample', timeoutMs: 250 });
    const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
    expect(first.timeoutMs).toBe(250);
    expect(await timeOut(first, 7)).toMatchObject({ state: 'dropped', aborts: [] });
    expect(await timeOut(first, 7)).toMatchObject({ state: 'dropped' });
    await test.complete(second);
    expect(await test.complete(third)).toMatchObject({ groupAccepted: true });
    const { wastedByReason, returnedAttempts, droppedGroups, failedGroups } = await status();
    expect({ wastedByReason, returnedAttempts, droppedGroups, failedGroups }).toEqual({
      wastedByReason: { timeout: 7 },
      returnedAttempts: { timeout: 1 },
      droppedGroups: 0,
      failedGroups: 0,
    });
  });

  it('takes its group with it by default', async () => {
    await open();
    const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
    await test.save(second, 2);
    const { state, aborts: told } = await timeOut(first, 7);
    expect([state, told.map(({ requestId }) => requestId)]).toEqual(['dropped', [second.requestId, third.requestId]]);
    await test.fail(second, 2);
    expect(await status()).toMatchObject({
      droppedGroups: 1,
      shortfallGroups: 1,
      wastedByReason: { timeout: 7, aborted: 2 },
    });
  });
});

it('a group with enough samples goes on when others have failed', async () => {
  await open({ policy: { name: 'resume', overProvision: 1, maxFailures: 0 } });
  const [first, second, third] = (await test.claim(3)) as [Claim, Claim, Claim];
  const failed = { countsAsFailure: true, retryable: false };
  await test.complete(first);
  await test.complete(second);
  await test.fail(third, 4, failed);
  expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 1, failedGroups: 0 });
});
