import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { RequestStore } from '../requests';
import { pagesOfGroups, RoundStore } from '../rounds';
import { RoutingStore } from '../routing';
import { ScriptRunner } from '../scripts/script-runner';
import { AbortStore } from './abort.store';
import type { AbortSelector } from './abort.types';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new ScriptRunner(redis, prefix);
const [aborts, rounds, requests, routing] = [
  new AbortStore(runner),
  new RoundStore(runner),
  new RequestStore(runner),
  new RoutingStore(runner),
];
const policy: TailPolicy = { name: 'resume', overProvision: 2 };
const job = 'job';
let pool: string;
let pools = 0;

beforeEach(() => {
  pool = `aborts-${pools++}`;
});
afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

async function open(neededGroups: number, newGroups: number, samples = 2) {
  const round = { job, roundId: 'r1' };
  const plan = { planId: 'p', step: 1, kind: 'short' as const, neededGroups, takeGroups: 0, newGroups };
  const parameters = { policy, weightVersion: 1, orphanAfterMs: 600_000, ...roundTerms(policy, plan, {}) };
  const { trainerEpoch } = await rounds.open(pool, { ...round, ...plan, ...parameters });
  const groups = Array.from({ length: newGroups }, (_, index) => ({
    groupId: `g${index}`,
    digest: 'd',
    samples,
    maxTokens: 10,
    promptRef: `prompt${index}`,
    sampling: '{}',
  }));
  for (const page of pagesOfGroups(groups)) await rounds.submit(pool, { ...round, trainerEpoch }, page);
  return { ...round, trainerEpoch };
}

async function worker() {
  const workerId = 'w';
  const { workerEpoch } = await routing.registerWorker(pool, { workerId, registrationId: 'r', ttlMs: 600_000 });
  const holder = { workerId, workerEpoch };
  let claims = 0;
  return {
    holder,
    claim: async (max: number) => (await requests.claim(pool, { claimId: `c${claims++}`, ...holder, max })).claims,
    fence: ({ requestId, attempt }: Claim) => ({ requestId, attempt, ...holder }),
  };
}

const begin = (selector: AbortSelector, abortId = 'a', keptMs = 600_000) =>
  aborts.begin(pool, { abortId, selector, reason: 'test', keptMs });
async function selectAll(abortId = 'a') {
  const pages = [];
  for (let more = true; more;) {
    const page = await aborts.select(pool, abortId);
    pages.push(page);
    ({ more } = page);
  }
  return pages;
}
const resultsOf = async (abortId = 'a', cursor = 0, limit = 128) => aborts.results(pool, { abortId, cursor, limit });
const books = async () => (await rounds.jobStatus(pool, job)).requests;
const segment = (tokens: number) => ({
  segment: JSON.stringify({ attempt: 1, ref: 'tokens', tokenCount: tokens }),
  tokens,
});

describe('AbortStore', () => {
  it('aborts a whole job by one number, before any page has come to it', async () => {
    await open(300, 300);
    const { claim, fence } = await worker();
    const claims = await claim(4);
    await begin({ job });
    const [first, second, third] = claims as [Claim, Claim, Claim];
    const completed = await requests.complete(pool, { ...fence(first), ...segment(3), finishReason: 'stop' });
    expect(completed).toMatchObject({ state: 'dropped', groupAccepted: false });
    expect(
      await requests.fail(pool, { ...fence(second), ...segment(2), countsAsFailure: true, retryable: false }),
    ).toMatchObject({ state: 'dropped' });
    expect(await requests.checkpoint(pool, { ...fence(third), tokens: 0 })).toEqual({ action: 'abort' });

    // In pages, none of them long.
    expect((await selectAll()).length).toBeGreaterThan(6);
    expect(await books()).toMatchObject({ submitted: 600, dropped: 598, cutting: 2 });
    const { results, cursor, aborting } = await resultsOf();
    expect([results.length, cursor, aborting]).toEqual([128, 128, 2]);
    expect(results.find(({ requestId }) => requestId === first.requestId)).toMatchObject({
      outcome: 'aborted',
      tokenCount: 3,
      segments: [{ ref: 'tokens' }],
    });
    const seen = new Set<string>();
    for (let at: number | undefined = 0; at !== undefined;) {
      const page: Awaited<ReturnType<typeof resultsOf>> = await resultsOf('a', at);
      for (const { requestId } of page.results) seen.add(requestId);
      at = page.cursor;
    }
    expect(seen.size).toBe(600);
    expect(await rounds.status(pool, { job })).toMatchObject({
      droppedGroups: 300,
      shortfallGroups: 300,
      state: 'open',
    });
  });

  it('gives nothing to a claim of what the number has aborted', async () => {
    await open(4, 4);
    const { claim } = await worker();
    await begin({ roundId: 'r1', job });
    expect(await claim(8)).toEqual([]);
    expect(await books()).toMatchObject({ submitted: 8, dropped: 8, pending: 0 });
    expect((await resultsOf()).results).toHaveLength(8);
    expect(await selectAll()).toMatchObject([{ more: false }]);
  });

  it('says it again until it is confirmed; past the deadline it can be ended without', async () => {
    await open(1, 1, 1);
    const { claim, fence, holder } = await worker();
    const [held] = (await claim(1)) as [Claim];
    await requests.checkpoint(pool, { ...fence(held), ...segment(5) });
    await begin({ requestIds: [held.requestId] });
    const command = { requestId: held.requestId, attempt: 1, ...holder };
    expect((await selectAll()).flatMap((page) => page.aborts)).toEqual([command]);
    const page = { groupCursor: 0, leaseCursor: 0 };
    for (let time = 0; time < 2; time++) {
      expect(await aborts.repeat(pool, { ...page, deadlineMs: 60_000 })).toMatchObject({
        aborts: [command],
        overdue: [],
      });
    }
    expect((await resultsOf()).results).toEqual([{ requestId: held.requestId, outcome: 'aborting' }]);
    const overdue = [{ requestId: held.requestId, attempt: 1 }];
    expect(await aborts.repeat(pool, { ...page, deadlineMs: -1 })).toMatchObject({ overdue, overdueLeases: [] });
    expect(await aborts.leasesOf(pool, [held.requestId])).toEqual([]);
    const unfenced = (attempt: number) => [{ requestId: held.requestId, attempt, fenced: false }];
    expect(await aborts.endOverdue(pool, { attempts: unfenced(2), leaseIds: [] })).toMatchObject({ ended: 0 });
    expect(await aborts.endOverdue(pool, { attempts: unfenced(1), leaseIds: [] })).toMatchObject({ ended: 1 });
    expect((await resultsOf()).results[0]).toMatchObject({ outcome: 'aborted', tokenCount: 5, unconfirmed: true });
    const late = await requests.complete(pool, { ...fence(held), ...segment(9), finishReason: 'stop' });
    expect(late.state).toBe('dropped');
    expect(await books()).toMatchObject({ submitted: 1, dropped: 1, cutting: 0 });
  });

  it('leaves what is finished alone, and what is folded or unknown', async () => {
    await open(2, 2, 1);
    const { claim, fence } = await worker();
    const [first] = (await claim(1)) as [Claim];
    await requests.complete(pool, { ...fence(first), ...segment(3), finishReason: 'stop' });
    await begin({ requestIds: [first.requestId, 'job/g7/0'] });
    await selectAll();
    expect((await resultsOf()).results).toMatchObject([
      { requestId: first.requestId, outcome: 'already-finished', tokenCount: 3 },
      { requestId: 'job/g7/0', outcome: 'not-found' },
    ]);
    expect(await rounds.status(pool, { job })).toMatchObject({ droppedGroups: 0, acceptedGroups: 1 });
  });

  it('takes groups out of the long-tail queue, and forgets them with their payloads after their life', async () => {
    const round = await open(1, 2, 1);
    const { claim, fence } = await worker();
    const [first, second] = (await claim(2)) as [Claim, Claim];
    await requests.complete(pool, { ...fence(first), ...segment(1), finishReason: 'stop' });
    await requests.fail(pool, { ...fence(second), ...segment(4), countsAsFailure: false, retryable: true });
    await rounds.cut(pool, round, 0);
    expect((await rounds.snapshot(pool, job)).longtailGroups).toBe(1);
    await begin({ job }, 'a', 1);
    await selectAll();
    expect(await rounds.snapshot(pool, job)).toMatchObject({ longtailGroups: 0, settlingGroups: 0 });
    await expect.poll(async () => (await rounds.due(pool)).dropped).toBe(1);
    expect(await aborts.forget(pool)).toEqual({
      groups: [{ job, groupId: 'g1', promptRef: 'prompt1', refs: ['tokens'] }],
      more: false,
    });
    expect(await redis.keys(`${runner.rootKey(pool)}:*:job/g1*`)).toEqual([]);
    expect(await rounds.jobStatus(pool, job)).toMatchObject({
      droppedGroups: 1,
      requests: { dropped: 1, finished: 1 },
    });
    // The answer and its rows are gone too.
    await expect.poll(() => redis.keys(`${runner.rootKey(pool)}:abort*`)).toEqual([]);
  });

  it('keeps a tombstone for its time only', async () => {
    const graves = (before: string) => redis.zcount(`${runner.rootKey(pool)}:aborts:tombstones`, '-inf', before);
    await begin({ requestIds: ['job/g0/1'] }, 'a', 1);
    await selectAll('a');
    await expect.poll(() => graves(`${Date.now() - 10}`)).toBe(1);
    await begin({ groupId: 'g1', job }, 'b');
    await selectAll('b');
    expect(await graves('+inf')).toBe(1);
    await open(3, 3);
    expect(await books()).toMatchObject({ pending: 4, dropped: 2 });
    expect(await rounds.status(pool, { job })).toMatchObject({ droppedGroups: 1, shortfallGroups: 1 });
  });
});
