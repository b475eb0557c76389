import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { ADMISSION_RULES, SessionAdmission, type AdmissionAnswer } from '@broomwagon/models';
import { buildOutlook, MIN_CONTEXT_BIN, type SessionCounts } from '@broomwagon/policies';
import type { WaiterAnswer } from '../leases/grants';
import { openTestStore, openTestWorker, type TestStore } from '../routing/routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;

const KV_TOKENS = 1_000;
const WAIT_MS = 20_000;
const SERVERS = ['a', 'b', 'c'];

/** A pool and its model, with a clock that the test moves. */
class Pair {
  readonly model = new SessionAdmission({ ...ADMISSION_RULES, pausedSessionWaitMs: WAIT_MS });
  /** Acquires with a lease. */
  readonly held: string[] = [];
  readonly seen = { grants: 0, waits: 0, pauses: 0, resumed: 0 };
  private nowMs = Date.now() + 86_400_000;
  private turns = 0;

  async open() {
    await test.configure({ sessionAdmission: 'kv', sessionKvTokens: KV_TOKENS, pausedSessionWaitMs: WAIT_MS });
    for (const id of SERVERS) {
      await test.server(id);
      this.model.addServer(id, KV_TOKENS);
    }
  }

  /** Moves the clock of the pool: a time of the pool in the future stays until the clock of Redis has reached it. */
  async pass(ms: number): Promise<number> {
    this.nowMs += ms;
    await test.redis.hset(`${test.root}:meta`, 'clockMs', this.nowMs, 'clockAheadMs', 0);
    return this.nowMs;
  }

  async turn(turn: { session: number; contextTokens?: number; groupId?: string; parent?: number; priority?: number }) {
    const { session, parent, ...more } = turn;
    const wanted = {
      ...more,
      acquireId: `a${String(++this.turns).padStart(4, '0')}`,
      sessionId: `s${session}`,
      parentSessionId: parent === undefined ? undefined : `s${parent}`,
    };
    const now = await this.pass(1);
    const expected = this.model.acquire(wanted, now);
    const parking = { waitMs: 10_000_000, replyTo: `inbox.${wanted.acquireId}` };
    const { results } = await test.leases.acquire(test.pool, [
      { requestId: 'job/g/0', ...worker.holder, ...wanted, ...parking },
    ]);
    expect(readAnswer(results[0])).toEqual('waits' in expected ? { parked: true } : expected);
    if ('serverId' in expected) this.held.push(wanted.acquireId);
    this.count(expected);
  }

  async end(nth: number, tokens: number) {
    const [acquireId] = this.held.splice(nth % Math.max(1, this.held.length), 1);
    if (acquireId === undefined) return;
    const now = await this.pass(1);
    const expected = this.model.release(acquireId, tokens, now);
    const { answers } = await test.leases.release(test.pool, [{ acquireId, outcome: 'finished', tokens }]);
    this.compareGrants(answers, expected);
  }

  async finish(session: number) {
    const now = await this.pass(1);
    const expected = this.model.finish(`s${session}`, now);
    this.compareGrants((await test.sessions.finish(test.pool, { sessionId: `s${session}` })).answers, expected);
  }

  async grantWaiters(ms: number) {
    const expected = this.model.grantWaiters(await this.pass(ms));
    this.compareGrants((await test.waiters.grant(test.pool)).answers, expected);
  }

  /** Computes the outlook from what both have learned, which must be the same. */
  async learn() {
    const learned = await test.sessions.learn(test.pool, {});
    expect(learned.isOn && learned.counts).toEqual(Object.fromEntries(this.model.residency.counts));
    const outlook = buildOutlook(readCounts(this.model.residency.counts));
    this.model.setOutlook(outlook);
    const fields = [
      ...outlook.growth.map((tokens, index) => [`growth${MIN_CONTEXT_BIN + index}`, tokens]),
      ...outlook.away.map((share, bin) => [`away${bin}`, share]),
    ];
    await test.sessions.learn(test.pool, { outlook: { ...Object.fromEntries(fields), staleMs: outlook.staleMs } });
  }

  async compareSessions() {
    const stored = await test.redis.hgetall(`${test.root}:sessions`);
    const read = Object.entries(stored).map(([id, packed]) => {
      const [serverId, , leases, , , context, shared, growth, state, sinceMs, family, parent] = packed.split('|');
      const numbers = [leases, context, shared, growth, sinceMs].map(Number);
      return [id, serverId, ...numbers, state, family, parent];
    });
    const expected = [...this.model.residency.sessions.values()].map((one) => [
      one.id,
      one.serverId,
      one.leases,
      one.context,
      one.shared,
      one.growth,
      one.sinceMs,
      one.state[0],
      one.family,
      one.parent ?? '',
    ]);
    const byId = (one: unknown[], other: unknown[]) => (String(one[0]) < String(other[0]) ? -1 : 1);
    expect(read.sort(byId)).toEqual(expected.sort(byId));
    const { newSessionWaiters, pausedSessionWaiters, sessionPauses } = await test.pools.status(test.pool);
    const { waiting, pauses } = this.model;
    expect({ newSessionWaiters, pausedSessionWaiters, sessionPauses }).toEqual({
      newSessionWaiters: waiting.count('new'),
      pausedSessionWaiters: waiting.count('paused'),
      sessionPauses: pauses,
    });
    this.seen.pauses = pauses;
  }

  private compareGrants(answers: readonly WaiterAnswer[], expected: ReturnType<SessionAdmission['grantWaiters']>) {
    const read = answers.map((one) => {
      const { acquireId, serverId, via } = one as unknown as Record<string, string>;
      return { acquireId, serverId, branch: via };
    });
    expect(read).toEqual(expected);
    this.held.push(...expected.map(({ acquireId }) => acquireId));
    expected.forEach((one) => this.count(one));
  }

  private count(answer: AdmissionAnswer) {
    if ('waits' in answer) this.seen.waits += 1;
    if (!('serverId' in answer)) return;
    this.seen.grants += 1;
    if (answer.branch === 'resumed') this.seen.resumed += 1;
  }
}

function readAnswer(result: unknown) {
  const { serverId, branch, error, parked } = result as Record<string, unknown>;
  if (parked) return { parked };
  return error === undefined ? { serverId, branch } : { error };
}

function readCounts(counts: ReadonlyMap<string, number>): SessionCounts {
  const read = (name: string) =>
    Object.fromEntries(
      [...counts]
        .filter(([field]) => field.startsWith(name))
        .map(([field, count]) => [field.slice(name.length), count]),
    );
  return { reached: read('reached'), ended: read('ended'), gaps: read('gap') };
}

it('admits, pauses and resumes sessions as the model of the laboratory does, whatever the order of turns', async () => {
  const session = fc.nat(11);
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('turn' as const),
        session,
        contextTokens: fc.option(fc.integer({ min: 1, max: 600 }), { nil: undefined, freq: 8 }),
        groupId: fc.constantFrom(undefined, undefined, 'g', 'h'),
        parent: fc.option(session, { nil: undefined, freq: 4 }),
        priority: fc.constantFrom(undefined, undefined, 9, 2),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        nth: fc.nat(40),
        tokens: fc.integer({ min: 0, max: 300 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('finish' as const), session }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(0, 300, 5_000, 30_000, 90_000) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('learn' as const) }) },
  );
  const seen: Pair['seen'][] = [];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 120 }), async (steps) => {
      test = openTestStore();
      worker = await openTestWorker(test);
      const pair = new Pair();
      await pair.open();
      for (const one of steps) {
        if (one.kind === 'turn') await pair.turn(one);
        else if (one.kind === 'end') await pair.end(one.nth, one.tokens);
        else if (one.kind === 'finish') await pair.finish(one.session);
        else if (one.kind === 'wait') await pair.grantWaiters(one.ms);
        else await pair.learn();
        await pair.compareSessions();
      }
      seen.push(pair.seen);
      await test.close();
    }),
    { numRuns: 25 * inject('runsFactor') },
  );
  const sum = (name: keyof Pair['seen']) => seen.reduce((total, one) => total + one[name], 0);
  for (const name of ['grants', 'waits', 'pauses', 'resumed'] as const)
    expect(sum(name), name).toBeGreaterThan(seen.length);
}, 120_000);
