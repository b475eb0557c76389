import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTestStore, openTestWorker, type TestStore } from './routing-store.fixture';

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
    expect((await worker.acquire({ sessionId: 's' })).error).toBe('NO_SERVER_AVAILABLE');
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
    await test.store.removeServer(test.pool, 'a');
    expect((await test.server('a')).epoch).toBeGreaterThan(epoch);
    expect((await worker.acquire({ sessionId: 's' })).dpRank).toBeUndefined();
  });

  it('are cleared all at once: idle ones forgotten, those with leases bound anew', async () => {
    await test.server('a');
    const kept = await worker.acquire({ sessionId: 'busy' });
    for (let n = 0; n < 300; n++) await test.release((await worker.acquire({ sessionId: `idle-${n}` })).acquireId);
    let cleared = 0;
    for (let cursor = ''; cursor !== '0';) {
      const page = await test.pools.clearSessions(test.pool, cursor || '0');
      cleared += page.cleared;
      ({ cursor } = page);
    }
    expect(cleared).toBe(301);
    expect((await test.store.status(test.pool)).sessions).toBe(1);
    expect((await worker.acquire({ sessionId: 'busy' })).branch).toBe('least-loaded');
    await test.release(kept.acquireId);
    expect((await test.store.status(test.pool)).sessions).toBe(1);
  });

  it('go by the age and number of the settings, and those that went are counted', async () => {
    await test.server('a');
    await test.configure({ maxSessions: 2 });
    for (const sessionId of ['one', 'two', 'three'])
      await test.release((await worker.acquire({ sessionId })).acquireId);
    expect(await test.store.status(test.pool)).toMatchObject({ sessions: 2, sessionsEvicted: 1 });
    await test.configure({ maxSessions: 1 });
    expect((await test.store.evictSessions(test.pool, 3_600_000)).evicted).toBe(1);
    expect(await test.store.status(test.pool)).toMatchObject({ sessions: 1, sessionsEvicted: 2 });
    expect(await test.redis.hvals(`${test.root}:servers:sessions`)).toEqual(['1']);
  });
});
