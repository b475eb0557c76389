import { buildRequestId, encodeComposedId, encodeId, idPart } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { openTestStore, openTestWorker, type TestStore } from '../routing/routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

describe('sessions', () => {
  it('keep their server up to the margin, inclusive, and leave it above; not with a long context', async () => {
    await test.server('a');
    await test.server('b');
    await test.configure({ affinityBreakMargin: 2, affinityBreakMaxContextTokens: 10_000 });
    const turn = (more = {}) => worker.acquire({ sessionId: 's', ...more });
    const first = await turn();
    expect((await turn()).branch).toBe('sticky-hit'); // 1 <= 0 + 2
    expect((await turn()).branch).toBe('sticky-hit'); // 2 <= 0 + 2: the boundary
    expect(await turn({ contextTokens: 10_001 })).toMatchObject({ branch: 'sticky-hit', serverId: first.serverId });
    const broken = await turn({ contextTokens: 10_000 });
    expect(broken).toMatchObject({ branch: 'sticky-broken', key: 0, inflight: 1 });
    expect(broken.serverId).not.toBe(first.serverId);
    expect((await turn()).serverId).toBe(broken.serverId);
  });

  it('leave a full server when the margin is broken instead of waiting for it', async () => {
    await test.server('a', 2);
    const first = await worker.acquire({ sessionId: 's' });
    await worker.acquire({ sessionId: 's' });
    await test.server('b', 2);
    expect((await worker.acquire({ sessionId: 's' })).error).toBe('SERVERS_FULL');
    await test.configure({ affinityBreakMargin: 1 });
    expect(await worker.acquire({ sessionId: 's' })).toMatchObject({ serverId: 'b', branch: 'sticky-broken' });
    expect(first.serverId).toBe('a');
  });

  it('keep their data-parallel rank on a server, and lose it elsewhere', async () => {
    const { epoch } = await test.server('a');
    expect((await worker.acquire({ sessionId: 's' })).dpRank).toBeUndefined();
    expect((await worker.acquire({ sessionId: 's', dpRank: 3 })).dpRank).toBe(3);
    expect((await worker.acquire({ sessionId: 's', acquireId: 'again' })).dpRank).toBe(3);
    expect(await worker.acquire({ sessionId: 's', acquireId: 'again' })).toMatchObject({
      branch: 'repeated',
      dpRank: 3,
    });
    await test.servers.remove(test.pool, { serverId: 'a' });
    expect((await test.server('a')).epoch).not.toBe(epoch);
    expect((await worker.acquire({ sessionId: 's' })).dpRank).toBeUndefined();
  });

  it('are cleared all at once: idle ones are forgotten, and others are bound anew', async () => {
    await test.server('a');
    const kept = await worker.acquire({ sessionId: 'busy' });
    for (let n = 0; n < 300; n++) await test.release((await worker.acquire({ sessionId: `idle-${n}` })).acquireId);
    expect(await test.sessions.clear(test.pool)).toBe(301);
    expect((await test.pools.status(test.pool)).sessions).toBe(1);
    expect((await worker.acquire({ sessionId: 'busy' })).branch).toBe('least-loaded');
    await test.release(kept.acquireId);
    expect((await test.pools.status(test.pool)).sessions).toBe(1);
  });

  it('end with their job: by name, by the job of an acquire, and by a group of the job', async () => {
    await test.server('a');
    await test.configure({ sessionAdmission: 'kv' });
    // As the services store the ids of the job `a/b`.
    const [job, group] = [encodeId('a/b'), encodeId(`${idPart('a/b')}/${idPart('g')}`)];
    const turns = {
      [encodeComposedId(buildRequestId('a/b', 'g', 0))]: {},
      named: { job },
      grouped: { groupId: group },
      'named-and-grouped': { job, groupId: 'g' },
      child: { parentSessionId: 'named' },
      'of-another': { job: `${job}c` },
      'of-no-job': { groupId: 'g' },
      'a/b/looks-alike': {},
    };
    for (const [sessionId, more] of Object.entries(turns)) {
      await test.release((await worker.acquire({ sessionId, ...more })).acquireId);
    }
    const busy = await worker.acquire({ sessionId: 'busy', job });
    expect(await test.sessions.finishJob(test.pool, job)).toBe(6);
    const left = async () => (await test.redis.hkeys(`${test.root}:sessions`)).sort();
    expect(await left()).toEqual(['a/b/looks-alike', 'busy', 'of-another', 'of-no-job']);
    await test.release(busy.acquireId);
    expect(await left()).toEqual(['a/b/looks-alike', 'of-another', 'of-no-job']);
    expect(await test.sessions.finishJob(test.pool, job)).toBe(0);
    for (const sessionId of await left()) await test.sessions.finish(test.pool, { sessionId });
    expect(await test.redis.keys(`${test.root}:sessions*`)).toEqual([`${test.root}:sessions:counts`]);
  });

  it('are evicted above the maximum age or number of the settings, and evictions are counted', async () => {
    await test.server('a');
    await test.configure({ maxSessions: 2 });
    for (const sessionId of ['one', 'two', 'three'])
      await test.release((await worker.acquire({ sessionId })).acquireId);
    expect(await test.pools.status(test.pool)).toMatchObject({ sessions: 2, sessionsEvicted: 1 });
    await test.configure({ maxSessions: 1 });
    expect((await test.sessions.evict(test.pool, { idleMs: 3_600_000 })).evicted).toBe(1);
    expect(await test.pools.status(test.pool)).toMatchObject({ sessions: 1, sessionsEvicted: 2 });
    expect(await test.redis.hvals(`${test.root}:servers:sessions`)).toEqual(['1']);
  });

  it('are never on two servers in one epoch, whatever becomes of servers, leases and waiters', async () => {
    const step = fc.record({
      kind: fc.constantFrom('turn', 'turn', 'turn', 'turn', 'release', 'release', 'register', 'restart', 'remove'),
      session: fc.nat(3),
      server: fc.constantFrom('a', 'b', 'c'),
      waits: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 60 }), async (steps) => {
        for (const id of ['a', 'b', 'c']) await test.server(id, 2);
        const turns = new Map<string, string[]>();
        for (const [n, { kind, session, server, waits }] of steps.entries()) {
          const name = `s${session}`;
          const turn = { sessionId: name, waitMs: waits ? 20_000 : 0, replyTo: `inbox.${n}` };
          if (kind === 'turn') {
            const { acquireId } = await worker.acquire(turn);
            turns.set(name, [...(turns.get(name) ?? []), acquireId]);
          }
          if (kind === 'release') await test.release(turns.get(name)?.shift() ?? 'nobody');
          if (kind === 'register') await test.server(server, 2);
          if (kind === 'restart') await test.server(server, 2, { instanceId: `start ${n}` });
          if (kind === 'remove') await test.servers.remove(test.pool, { serverId: server });
          if (kind !== 'turn') await test.sweep();
          await expectOneServerEach();
        }
        for (const acquireId of [...turns.values()].flat()) await test.release(acquireId);
      }),
      { numRuns: 10 * inject('runsFactor') },
    );
  });
});

/** Expects that all leases of a session on current server epochs are on one server. */
async function expectOneServerEach() {
  const current = new Set<string>();
  for (const { serverId, epoch } of (await test.servers.list(test.pool)).servers) {
    current.add(`${serverId}:${epoch}`);
  }
  const places = new Map<string, string>();
  for (const packed of await test.redis.hvals(`${test.root}:leases`)) {
    const [, serverId, epoch, , , , sessionId] = packed.split('|') as string[];
    const place = `${serverId}:${epoch}`;
    if (!current.has(place)) continue;
    expect(places.get(sessionId!) ?? place, sessionId).toBe(place);
    places.set(sessionId!, place);
  }
}
