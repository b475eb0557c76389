import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { PoolSettings } from '@broomwagon/contracts';
import { PoolAudit } from '../audit';
import type { WaiterAnswer } from '../leases/grants';
import { openTestStore, openTestWorker, type TestStore } from '../routing/routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

/** KV memory of each server of these tests, tokens; contexts may fill 980 of them. */
const KV_TOKENS = 1_000;

async function open(servers: string[], more: PoolSettings = {}) {
  await test.configure({ sessionAdmission: 'kv', sessionKvTokens: KV_TOKENS, ...more });
  for (const id of servers) await test.server(id);
}
/** Begins a turn; it waits if it must. */
const turn = (sessionId: string, contextTokens?: number, more = {}) =>
  worker.acquire({ sessionId, contextTokens, waitMs: 20_000, replyTo: `inbox.${sessionId}`, ...more });
const end = ({ acquireId }: { acquireId: string }, tokens = 0) =>
  test.leases.release(test.pool, [{ acquireId, outcome: 'finished', tokens }]);
async function wholeTurn(sessionId: string, contextTokens?: number, more = {}) {
  const granted = await turn(sessionId, contextTokens, more);
  await end(granted);
  return granted;
}
const state = async (sessionId: string) =>
  (await test.redis.hget(`${test.root}:sessions`, sessionId))?.split('|')[8] ?? 'none';
/** Context tokens of resident sessions on a server. */
async function residentTokens(serverId: string) {
  const { epoch } = (await test.servers.list(test.pool)).servers.find((one) => one.serverId === serverId)!;
  const sums = await test.redis.hgetBuffer(`${test.root}:servers:kv`, `${serverId}:${epoch}`);
  return sums?.readDoubleLE(0) ?? 0;
}
const audit = async () => (await new PoolAudit(test.redis, test.runner).run(test.pool)).findings;
const totals = () => test.pools.status(test.pool);

describe('without sessionAdmission', () => {
  it('sessions are stored as before, and nothing else is', async () => {
    await test.server('a');
    await end(await turn('s', 5_000_000), 10);
    await end(await turn('s', 5_000_100));
    expect((await test.redis.hget(`${test.root}:sessions`, 's'))!.split('|')).toHaveLength(5);
    const keys = await test.redis.keys(`${test.root}:*`);
    expect(keys.filter((key) => /kv|paused|away|family|counts|outlook/.test(key))).toEqual([]);
  });

  it('a pool that ends admission grants its waiters, and forgets what it counted as sessions take turns', async () => {
    await open(['a']);
    await wholeTurn('s', 500);
    const waiting = await turn('new', 900);
    expect(waiting).toMatchObject({ parked: true });
    await test.configure({}, ['sessionAdmission']);
    expect((await test.redis.hget(`${test.root}:leases`, waiting.acquireId)) ?? '').toContain('|a|');
    await wholeTurn('s', 600);
    expect(await state('s')).toBe('none');
    expect(await residentTokens('a')).toBe(0);
    expect(await audit()).toEqual([]);
  });

  it('a pool that ends admission while many sessions wait grants each of them once, by releases alone', async () => {
    await open([], { pausedSessionWaitMs: 600_000 });
    await test.server('a', 3);
    for (let n = 0; n < 30; n++) await wholeTurn(`paused${n}`, 100, { boundServerId: 'a' });
    await turn('holder', 970, { boundServerId: 'a' });
    const waiting: string[] = [];
    for (let n = 0; n < 60; n++) {
      waiting.push((await turn(n < 30 ? `paused${n}` : `new${n}`, 600)).acquireId);
    }
    expect(await totals()).toMatchObject({ leases: 1, pausedSessionWaiters: 30, newSessionWaiters: 30 });

    const answers: WaiterAnswer[] = [];
    const { version } = await test.pools.configure(test.pool, {}, ['sessionAdmission']);
    for await (const page of test.servers.pages('rescore', test.pool)) answers.push(...page.answers);
    await test.pools.finish(test.pool, version);
    for await (const page of test.waiters.whileMore('grant', test.pool)) answers.push(...page.answers);
    expect(await totals()).toMatchObject({ leases: 3, pausedSessionWaiters: 0, newSessionWaiters: 0 });
    for (let n = 0; n < 61; n++) {
      const [acquireId] = await test.redis.hkeys(`${test.root}:leases`);
      answers.push(...(await end({ acquireId: acquireId! })).answers);
    }
    expect(answers.map(({ acquireId }) => acquireId).toSorted()).toEqual(waiting.toSorted());
    expect(answers.filter((answer) => 'error' in answer)).toEqual([]);
    expect(await totals()).toMatchObject({ leases: 0 });
    expect(await audit()).toEqual([]);
  });
});

describe('sessionAdmission kv', () => {
  it('admits new sessions while their contexts fit with a share of the growth, then lets them wait in order', async () => {
    await open(['a']);
    // 300 tokens of context and 0.35 x 288 of expected growth each.
    const first = await turn('s1', 300);
    expect(first.branch).toBe('admitted');
    expect((await turn('s2', 300)).branch).toBe('admitted');
    const third = await turn('s3', 300);
    const fourth = await turn('s4', 300);
    expect([third, fourth]).toEqual([
      expect.objectContaining({ parked: true }),
      expect.objectContaining({ parked: true }),
    ]);
    expect(await worker.acquire({ sessionId: 's5', contextTokens: 300 })).toMatchObject({
      error: 'SERVERS_FULL',
      reason: 'kv-full',
    });
    expect(await totals()).toMatchObject({ newSessionWaiters: 2, pausedSessionWaiters: 0 });
    // A session that ends with its last lease makes room then.
    await test.sessions.finish(test.pool, { sessionId: 's1' });
    expect(await totals()).toMatchObject({ newSessionWaiters: 2 });
    const { answers } = await end(first);
    expect(answers.map(({ acquireId }) => acquireId)).toEqual([third.acquireId]);
    expect(await totals()).toMatchObject({ newSessionWaiters: 1 });
  });

  it('never lets a resident session wait, and pauses a session between two turns when memory runs out', async () => {
    await open(['a']);
    await wholeTurn('away', 300);
    const running = await turn('running', 300);
    const grown = await turn('grown', 50);
    await end(grown, 550); // 1,200 tokens: one session has to go, not the one that runs
    expect([await state('away'), await state('running'), await state('grown')]).toEqual(['p', 'r', 'r']);
    expect(await turn('grown', 700)).toMatchObject({ branch: 'sticky-hit' });
    expect(await state('running')).toBe('r');
    await end(running);
    expect(await totals()).toMatchObject({ pausedSessions: 2, sessionPauses: 2 });
    expect(await audit()).toEqual([]);
  });

  it('resumes a paused session before new ones: at home if it fits there, else where it fits', async () => {
    await open(['a', 'b'], { pausedSessionWaitMs: 60_000 });
    const place = (await wholeTurn('paused', 300)).serverId;
    const big = await turn('big', 400, { boundServerId: place });
    await end(big, 500);
    expect(await state('paused')).toBe('p');
    const elsewhere = await turn('paused', 310);
    expect(elsewhere).toMatchObject({ branch: 'resumed', serverId: place === 'a' ? 'b' : 'a' });
    await end(elsewhere);
    await test.sessions.finish(test.pool, { sessionId: 'big' });
    await end(await turn('bigger', 500, { boundServerId: elsewhere.serverId }), 300);
    expect(await state('paused')).toBe('p');
    await test.sessions.finish(test.pool, { sessionId: 'bigger' });
    expect(await turn('paused', 320)).toMatchObject({ branch: 'resumed', serverId: elsewhere.serverId });
    expect(await audit()).toEqual([]);
  });

  it('lets new sessions wait while a paused one waits, and grants the paused one first', async () => {
    await open(['a']);
    await wholeTurn('paused', 500);
    const holder = await turn('holder', 200);
    await end(holder, 600);
    expect(await state('paused')).toBe('p');
    await turn('holder', 800);
    const resumed = await turn('paused', 500);
    const fresh = await turn('fresh', 10);
    expect([resumed, fresh]).toEqual([
      expect.objectContaining({ parked: true }),
      expect.objectContaining({ parked: true }),
    ]);
    expect(await totals()).toMatchObject({ pausedSessionWaiters: 1, newSessionWaiters: 1 });
    const holding = (await test.redis.hgetall(`${test.root}:leases`)) as Record<string, string>;
    await test.leases.release(test.pool, [{ acquireId: Object.keys(holding)[0]!, tokens: 0 }]);
    const { answers } = await test.sessions.finish(test.pool, { sessionId: 'holder' });
    expect(answers.map(({ acquireId }) => acquireId)).toEqual([resumed.acquireId, fresh.acquireId]);
    expect(answers[0]).toMatchObject({ branch: 'waited', via: 'resumed' });
    expect(await audit()).toEqual([]);
  });

  it('resumes a paused session after pausedSessionWaitMs whatever the memory, also when its acquires were answered', async () => {
    await open(['a'], { pausedSessionWaitMs: 1 });
    await wholeTurn('paused', 500);
    await end(await turn('holder', 200), 700);
    await turn('holder', 900);
    expect(await state('paused')).toBe('p');
    // The first acquire does not wait; the wait of the turn begins with it.
    expect(await worker.acquire({ sessionId: 'paused', contextTokens: 500 })).toMatchObject({ reason: 'kv-full' });
    expect(await state('paused')).toBe('w');
    await expect.poll(async () => (await turn('paused', 500)).branch).toBe('resumed');
    expect(await residentTokens('a')).toBe(1_400);
    expect(await audit()).toEqual([]);
  });

  it('counts a prefix that the sessions of a group share once, also when its first session leaves', async () => {
    await open(['a']);
    for (const sessionId of ['one', 'two', 'three']) await wholeTurn(sessionId, 200, { groupId: 'g' });
    expect(await residentTokens('a')).toBe(200);
    await wholeTurn('two', 260, { groupId: 'g' });
    expect(await residentTokens('a')).toBe(260);
    await test.sessions.finish(test.pool, { sessionId: 'one' });
    expect(await residentTokens('a')).toBe(260);
    await test.sessions.finish(test.pool, { sessionId: 'two' });
    await test.sessions.finish(test.pool, { sessionId: 'three' });
    expect(await residentTokens('a')).toBe(0);
    expect(await test.redis.exists(`${test.root}:session-family:g`)).toBe(0);
  });

  it('admits the subagent of a session as a paused session, with the prefix of its parent counted once', async () => {
    await open(['a']);
    await wholeTurn('parent', 500);
    await turn('other', 100);
    const fresh = await turn('fresh', 300);
    expect(fresh).toMatchObject({ parked: true });
    expect(await turn('child', 600, { parentSessionId: 'parent' })).toMatchObject({ branch: 'resumed' });
    expect(await residentTokens('a')).toBe(700);
    expect((await test.redis.hget(`${test.root}:sessions`, 'child'))!.split('|').slice(-2)).toEqual([
      'parent',
      'parent',
    ]);
  });

  it('refuses another parent and a circle of parents, and changes nothing', async () => {
    await open(['a']);
    await wholeTurn('child', 10, { parentSessionId: 'parent' });
    const conflict = { error: 'SESSION_CONFLICT' };
    expect(await turn('child', 10, { parentSessionId: 'other' })).toMatchObject(conflict);
    expect(await turn('parent', 10, { parentSessionId: 'child' })).toMatchObject(conflict);
    expect(await turn('self', 10, { parentSessionId: 'self' })).toMatchObject(conflict);
    expect(await turn('child', 10, { parentSessionId: 'parent' })).toMatchObject({ branch: 'sticky-hit' });
    expect(await turn('parent', 10)).toMatchObject({ branch: 'admitted' });
  });

  it('follows a context that shrinks, and counts turns at the same time once', async () => {
    await open(['a']);
    await wholeTurn('s', 500);
    await wholeTurn('s', 100);
    expect(await residentTokens('a')).toBe(500); // the first 500 tokens count as shared with siblings
    const [one, other] = [await turn('s', 600), await turn('s', 550)];
    expect(await residentTokens('a')).toBe(600);
    await end(one, 50);
    expect(await residentTokens('a')).toBe(650);
    await end(other, 10);
    expect(await residentTokens('a')).toBe(650);
    expect(await audit()).toEqual([]);
  });

  it('takes a session that is larger than any KV memory on a server without sessions, and delays nobody elsewhere', async () => {
    await open(['a', 'b']);
    const huge = await turn('huge', 10_000_000);
    expect(huge.branch).toBe('admitted');
    expect((await turn('small', 100)).serverId).not.toBe(huge.serverId);
    await end(huge, 5);
    expect(await state('huge')).toBe('p');
    expect(await residentTokens(huge.serverId)).toBe(0);
  });

  it('keeps residency right when a server with 500 sessions is lost: they resume elsewhere, and none is lost', async () => {
    await open([], { sessionKvTokens: 100_000 });
    for (const id of ['a', 'b']) await test.server(id, 1_000);
    const turns = [];
    for (let n = 0; n < 500; n++) turns.push(await turn(`s${n}`, 50, { boundServerId: 'a' }));
    await test.server('a', 1_000, { instanceId: 'restarted' });
    await test.sweep();
    expect(await residentTokens('a')).toBe(0);
    expect(await audit()).toEqual([]);
    for (let n = 0; n < 500; n++) expect(await turn(`s${n}`, 60)).toMatchObject({ branch: 'resumed' });
    expect((await residentTokens('a')) + (await residentTokens('b'))).toBe(500 * 60);
    expect(await audit()).toEqual([]);
    expect(turns).toHaveLength(500);
  });

  it('takes the KV memory from the report of the engine, else from the setting; a smaller one pauses sessions', async () => {
    await open(['a']);
    const report = async (kvTokens?: number) => {
      const { epoch } = (await test.servers.list(test.pool)).servers[0]!;
      await test.servers.reportLoads(test.pool, {
        reports: [{ serverId: 'a', epoch, running: 0, waiting: 0, kvTokens }],
      });
    };
    await report(10_000);
    await wholeTurn('s1', 900);
    await wholeTurn('s2', 900);
    await report(1_000);
    await wholeTurn('s2', 900);
    expect([await state('s1'), await state('s2')]).toEqual(['p', 'r']);
    for (const none of [undefined, 0]) {
      await report(none);
      expect(await turn('s3', 900)).toMatchObject({ parked: true });
    }
    await test.configure({}, ['sessionKvTokens']);
    expect(await turn('s4', 50_000)).toMatchObject({ branch: 'admitted' });
  });

  it('pauses sessions that are not expected to return when others wait', async () => {
    await open(['a']);
    for (let n = 0; n < 40; n++) await wholeTurn(`gone${n}`, 10);
    await turn('holder', 500);
    expect(await turn('new', 400)).toMatchObject({ parked: true });
    await test.sessions.learn(test.pool, { outlook: { staleMs: 0, ...ALL_RETURN } });
    await expect
      .poll(async () => (await test.waiters.grant(test.pool)).answers.length + (await totals()).leases)
      .toBeGreaterThan(1);
    expect((await totals()).pausedSessions).toBeGreaterThan(0);
    expect(await state('holder')).toBe('r');
    expect(await audit()).toEqual([]);
  });

  it('learns growth and gaps, and halves the counts when there are many', async () => {
    await open(['a'], { sessionKvTokens: 1_000_000 });
    await wholeTurn('s', 1_000);
    await end(await turn('s', 5_000), 100);
    await test.sessions.finish(test.pool, { sessionId: 's' });
    const learned = await test.sessions.learn(test.pool, {});
    expect(learned).toMatchObject({
      isOn: true,
      counts: { reached9: 1, reached10: 1, reached11: 1, reached12: 1, ended12: 1 },
    });
    await test.redis.hset(`${test.root}:sessions:counts`, 'gap3', 300_000);
    expect(await test.sessions.learn(test.pool, {})).toMatchObject({ counts: { gap3: 150_000, ended12: 0 } });
  });

  it('forgets cleared, evicted and moved contexts on the right server', async () => {
    await open(['a', 'b']);
    const held = await turn('moved', 300, { boundServerId: 'a' });
    await test.leases.transfer(test.pool, {
      transferId: 't',
      acquireId: held.acquireId,
      ...worker.holder,
      targetServerId: 'b',
    });
    expect([await residentTokens('a'), await residentTokens('b')]).toEqual([0, 300]);
    await wholeTurn('idle', 100, { boundServerId: 'a' });
    await test.sessions.clear(test.pool);
    expect([await residentTokens('a'), await residentTokens('b')]).toEqual([0, 0]);
    await end(held);
    await wholeTurn('idle', 100);
    await test.configure({ sessionIdleMs: 1 });
    await expect.poll(async () => (await test.sessions.evict(test.pool, { idleMs: 1 })).evicted).toBe(1);
    expect(await audit()).toEqual([]);
  });

  it('keeps all sums right and grants no turn twice, whatever becomes of sessions, servers and waiters', async () => {
    const step = fc.record({
      kind: fc.constantFrom(
        'turn',
        'turn',
        'turn',
        'turn',
        'end',
        'end',
        'end',
        'finish',
        'restart',
        'cordon',
        'clear',
      ),
      session: fc.nat(7),
      server: fc.constantFrom('a', 'b', 'c'),
      tokens: fc.integer({ min: 1, max: 400 }),
      groupId: fc.constantFrom(undefined, 'g', 'h'),
      parent: fc.option(fc.nat(7), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 80 }), async (steps) => {
        await open(['a', 'b', 'c'], { pausedSessionWaitMs: 600_000 });
        const held = new Set<string>();
        for (const [n, { kind, session, server, tokens, groupId, parent }] of steps.entries()) {
          const sessionId = `s${session}`;
          if (kind === 'turn') {
            const parentSessionId = parent === undefined ? undefined : `s${parent}`;
            const granted = await turn(sessionId, tokens, { groupId, parentSessionId, replyTo: `inbox.${n}` });
            held.add(granted.acquireId);
          }
          if (kind === 'end') {
            const [acquireId] = await test.redis.hkeys(`${test.root}:leases`);
            if (acquireId) await end({ acquireId }, tokens);
            if (acquireId) await end({ acquireId }, tokens); // a repeat changes nothing
          }
          if (kind === 'finish') await test.sessions.finish(test.pool, { sessionId });
          if (kind === 'restart') await test.server(server, 100, { instanceId: `start ${n}` });
          if (kind === 'cordon') await test.servers.cordon(test.pool, { serverId: server, cordoned: n % 2 === 0 });
          if (kind === 'clear') await test.sessions.clear(test.pool);
          if (kind !== 'turn') await test.sweep();
        }
        expect(await audit()).toEqual([]);
        for (const acquireId of held) await test.leases.release(test.pool, [{ acquireId }]);
        for (let n = 0; n < 8; n++) await test.sessions.finish(test.pool, { sessionId: `s${n}` });
        expect(await audit()).toEqual([]);
        expect(await test.redis.hgetall(`${test.root}:servers:kv`)).toEqual({});
        expect(await totals()).toMatchObject({ leases: 0, sessions: 0, pausedSessions: 0 });
      }),
      { numRuns: 15 * inject('runsFactor') },
    );
  });
});

/** Shares of an outlook by which sessions return soon. */
const ALL_RETURN = Object.fromEntries(Array.from({ length: 24 }, (_, bin) => [`away${bin}`, 1 / (bin + 1)]));
