import type { AttemptId, Claim } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { AbortStore } from './abort.store';
import type { AbortSelector } from './abort.store';

const test = new TestPools();
const { redis, rounds, leases, servers } = test;
const aborts = new AbortStore(test.runner);
const job = 'job';
let pool: string;

beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
});
afterAll(() => test.close());

const open = (neededGroups: number, newGroups: number, samples = 2) =>
  test.open({ policy: { name: 'resume', overProvision: 2 }, neededGroups, newGroups, samples });
const begin = (selector: AbortSelector, abortId = 'a', keptMs = 600_000) =>
  aborts.begin(pool, { abortId, selector, reason: 'test', keptMs });
async function selectAll(abortId = 'a') {
  const pages = [];
  for (let more = true; more;) {
    const page = await aborts.select(pool, { abortId });
    pages.push(page);
    ({ more } = page);
  }
  return pages;
}
const readResults = async (abortId = 'a', cursor = 0, limit = 128) => aborts.results(pool, { abortId, cursor, limit });
const counts = () => test.states();

const registerServer = () =>
  servers.register(pool, {
    serverId: 'server',
    endpoint: 'http://10.0.0.1:8000',
    dialect: 'vllm',
    probe: false,
    instanceId: 'i',
    model: 'm',
    maxInflight: 1_000,
    weight: 1,
    weightVersion: 0,
  });

describe('AbortStore', () => {
  it('aborts a whole job by one number, before any page of it is selected', async () => {
    await open(300, 300);
    const claims = await test.claim(4);
    await begin({ job });
    const [first, second, third] = claims as [Claim, Claim, Claim];
    const completed = await test.complete(first, 3);
    expect(completed).toMatchObject({ state: 'dropped', groupAccepted: false });
    expect(await test.fail(second, 2, { countsAsFailure: true, retryable: false })).toMatchObject({ state: 'dropped' });
    expect(await test.save(third, 0)).toMatchObject({ action: 'abort' });

    // The selection takes several pages.
    expect((await selectAll()).length).toBeGreaterThan(6);
    expect(await counts()).toMatchObject({ submitted: 600, dropped: 598, cutting: 2 });
    const { results, cursor, aborting } = await readResults();
    expect([results.length, cursor, aborting]).toEqual([128, 128, 2]);
    expect(results.find(({ requestId }) => requestId === first.requestId)).toMatchObject({
      outcome: 'aborted',
      tokenCount: 3,
      segments: [{ ref: `job/g0/0-${first.attempt}` }],
    });
    const seen = new Set<string>();
    for (let at: number | undefined = 0; at !== undefined;) {
      const page: Awaited<ReturnType<typeof readResults>> = await readResults('a', at);
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

  it('grants no claim of a round that was aborted by its number', async () => {
    await open(4, 4);
    await begin({ roundId: 'r1', job });
    expect(await test.claim(8)).toEqual([]);
    expect(await counts()).toMatchObject({ submitted: 8, dropped: 8, pending: 0 });
    expect((await readResults()).results).toHaveLength(8);
    expect(await selectAll()).toMatchObject([{ more: false }]);
  });

  it('repeats an abort until its holder confirms, and can end it without the holder after the deadline', async () => {
    await open(1, 1, 1);
    const [held] = (await test.claim(1)) as [Claim];
    await test.save(held, 5);
    const { serverId, epoch } = await registerServer();
    await leases.acquire(pool, [{ acquireId: 'a', requestId: held.requestId, ...test.holder }]);
    await begin({ requestIds: [held.requestId] });
    const command = { requestId: held.requestId, attempt: held.attempt, ...test.holder };
    expect((await selectAll()).flatMap((page) => page.aborts)).toEqual([command]);
    const page = {};
    for (let time = 0; time < 2; time++) {
      expect(await aborts.repeat(pool, { ...page, deadlineMs: 60_000 })).toMatchObject({
        aborts: [command],
        overdue: [],
      });
    }
    expect((await readResults()).results).toEqual([{ requestId: held.requestId, outcome: 'aborting' }]);
    const overdue = [{ requestId: held.requestId, attempt: held.attempt }];
    expect(await aborts.repeat(pool, { ...page, deadlineMs: -1 })).toMatchObject({
      overdue,
      overdueServers: [{ requestId: held.requestId, serverId, epoch }],
      overdueLeases: [],
    });
    const unfenced = (attempt: AttemptId) => [{ requestId: held.requestId, attempt, fenced: false }];
    expect(await aborts.endOverdue(pool, { attempts: unfenced('2-a'), leaseIds: [] })).toMatchObject({ ended: 0 });
    expect(await aborts.endOverdue(pool, { attempts: unfenced(held.attempt), leaseIds: [] })).toMatchObject({
      ended: 1,
    });
    expect((await readResults()).results[0]).toMatchObject({ outcome: 'aborted', tokenCount: 5, unconfirmed: true });
    const late = await test.complete(held, 9);
    expect(late.state).toBe('dropped');
    expect(await counts()).toMatchObject({ submitted: 1, dropped: 1, cutting: 0 });
  });

  it('leaves a finished request as it is, and reports an unknown one as not found', async () => {
    await open(2, 2, 1);
    const [first] = (await test.claim(1)) as [Claim];
    await test.complete(first, 3);
    await begin({ requestIds: [first.requestId, 'job/g7/0'] });
    await selectAll();
    expect((await readResults()).results).toMatchObject([
      { requestId: first.requestId, outcome: 'already-finished', tokenCount: 3 },
      { requestId: 'job/g7/0', outcome: 'not-found' },
    ]);
    expect(await rounds.status(pool, { job })).toMatchObject({ droppedGroups: 0, acceptedGroups: 1 });
  });

  it('finds every lease of a request that no round knows, and no other', async () => {
    const { holder } = test;
    await registerServer();
    const take = async (requestId: string, count: number) => {
      const items = Array.from({ length: count }, (_, n) => ({ acquireId: `${requestId}.${n}`, requestId, ...holder }));
      const { results } = await leases.acquire(pool, items);
      return results.map((result, n) => ('seq' in result ? `${result.seq}.${items[n]!.acquireId}` : 'refused'));
    };
    await take('other', 3);
    const held = [...(await take('turns', 128)), ...(await take('one', 1))];
    expect(await redis.scard(test.key('request-leases:turns'))).toBe(128);
    await leases.release(pool, [{ acquireId: 'turns.0' }]);
    await begin({ requestIds: ['turns', 'one', 'nobody'] });
    const pages = await selectAll();
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.flatMap(({ leases }) => leases.map(({ leaseId }) => leaseId)).sort()).toEqual(held.slice(1).sort());
    const { results } = await readResults('a', 0, 512);
    expect(results.filter(({ outcome }) => outcome === 'not-found').map(({ requestId }) => requestId)).toEqual([
      'nobody',
    ]);
    await leases.release(
      pool,
      Array.from({ length: 128 }, (_, n) => ({ acquireId: `turns.${n}` })),
    );
    // One field has an empty name: it makes Redis store the hash as a table.
    expect((await redis.hkeys(test.key('leases:requests'))).sort()).toEqual(['', 'one', 'other']);
    expect(await redis.exists(test.key('request-leases:turns'))).toBe(0);
  });

  it('answers the acquires that wait for requests of an aborted group or round, and no other', async () => {
    await open(3, 3);
    const claims = await test.claim(6);
    const waiting = [...claims.map(({ requestId }) => requestId), 'turns'];
    const items = waiting.map((requestId) => ({
      acquireId: requestId.replaceAll('/', '-'),
      requestId,
      ...test.holder,
      waitMs: 60_000,
      replyTo: `inbox.${requestId}`,
    }));
    await leases.acquire(pool, items);
    const answered = async (selector: AbortSelector, abortId: string) => {
      await begin(selector, abortId);
      return (await selectAll(abortId)).flatMap(({ answers }) => answers.map(({ replyTo, error }) => [replyTo, error]));
    };
    const refused = (groups: number[]) =>
      groups.flatMap((group) => [0, 1].map((sample) => [`inbox.job/g${group}/${sample}`, 'ABORTED']));
    expect((await answered({ groupId: 'g1', job }, 'a')).sort()).toEqual(refused([1]));
    expect((await answered({ roundId: 'r1', job }, 'b')).sort()).toEqual(refused([0, 2]));
    expect(await redis.hkeys(test.key('waiters:acquire'))).toEqual(['turns']);
  });

  it('takes groups out of the long-tail queue, and forgets them with their payloads after their life', async () => {
    const round = await open(1, 2, 1);
    const [first, second] = (await test.claim(2)) as [Claim, Claim];
    await test.complete(first, 1);
    await test.fail(second, 4);
    await rounds.cut(pool, { ...round, cursor: 0 });
    expect((await rounds.progress(pool, { job })).longtailGroups).toBe(1);
    await begin({ job }, 'a', 1);
    await selectAll();
    expect(await rounds.progress(pool, { job })).toMatchObject({ longtailGroups: 0, settlingGroups: 0 });
    await expect.poll(async () => (await rounds.due(pool)).dropped).toBe(1);
    expect(await aborts.forget(pool)).toEqual({ more: false });
    expect(await redis.zrange(test.key('payloads:freed'), '0', '-1')).toEqual([
      `job/g1/0-${second.attempt}`,
      'prompt1',
    ]);
    expect(await redis.keys(test.key('*:job/g1*'))).toEqual([]);
    expect(await rounds.jobStatus(pool, { job })).toMatchObject({
      droppedGroups: 1,
      requests: { dropped: 1, finished: 1 },
    });
    // The record of the abort and its rows are deleted too.
    await expect.poll(() => redis.keys(test.key('abort*'))).toEqual([]);
  });

  it('does not abort a group whose name is the id of an unknown request', async () => {
    await begin({ requestIds: ['job/g0'] });
    await selectAll();
    await open(1, 1);
    expect(await counts()).toMatchObject({ pending: 2 });
    expect(await rounds.status(pool, { job })).toMatchObject({ droppedGroups: 0 });
  });

  it('keeps a tombstone for its time only', async () => {
    const graves = (before: string) => redis.zcount(test.key('aborts:tombstones'), '-inf', before);
    await begin({ requestIds: ['job/g0/1'] }, 'a', 1);
    await selectAll('a');
    await expect.poll(() => graves(`${Date.now() - 10}`)).toBe(1);
    await begin({ groupId: 'g1', job }, 'b');
    await selectAll('b');
    expect(await graves('+inf')).toBe(1);
    await open(3, 3);
    expect(await counts()).toMatchObject({ pending: 4, dropped: 2 });
    expect(await rounds.status(pool, { job })).toMatchObject({ droppedGroups: 1, shortfallGroups: 1 });
  });
});
