import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, openTestWorker, type TestStore } from '../routing/routing-store.fixture';

const CLOSES = { capabilities: { sessionClose: true } };
let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

const close = (...notified: string[]) => test.sessions.close(test.pool, { notified });
const count = () => test.redis.zcard(`${test.root}:sessions:ended`);
/** A turn of a session that has ended. */
const turn = async (sessionId: string, more = {}) =>
  test.release((await worker.acquire({ sessionId, ...more })).acquireId);
const finish = (sessionId: string) => test.sessions.finish(test.pool, { sessionId });

it('gives the engine and the name of a session that has ended, once, and forgets a notified session', async () => {
  await test.server('a', 2, CLOSES);
  const sessionId = 'token/a%7Cb.c';
  await turn(sessionId);
  expect((await close()).closes).toEqual([]);
  await finish(sessionId);
  const { closes, more } = await close();
  expect([closes, more]).toMatchObject([[{ sessionId, serverId: 'a', dialect: 'vllm' }], false]);
  expect(closes[0]!.endpoint).toMatch(/^http/);
  // The next repeat is due after 30 s.
  expect([(await close()).closes, await count()]).toEqual([[], 1]);
  expect([(await close(closes[0]!.entry)).closes, await count()]).toEqual([[], 0]);
});

it('gives a session with a running call after this call', async () => {
  await test.server('a', 2, CLOSES);
  const { acquireId } = await worker.acquire({ sessionId: 's' });
  await finish('s');
  expect((await close()).closes).toEqual([]);
  await test.release(acquireId);
  expect((await close()).closes).toMatchObject([{ sessionId: 's' }]);
});

it('gives sessions that were idle for too long, and the former server of a session that has moved', async () => {
  await test.server('a', 1, CLOSES);
  await turn('idle');
  expect((await test.sessions.evict(test.pool, { idleMs: -1 })).evicted).toBe(1);
  await turn('moved');
  await test.server('b', 1, CLOSES);
  await test.servers.cordon(test.pool, { serverId: 'a', cordoned: true });
  await turn('moved');
  const { closes } = await close();
  expect(closes.map(({ sessionId, serverId }) => [sessionId, serverId]).sort()).toEqual([
    ['idle', 'a'],
    ['moved', 'a'],
  ]);
});

it('gives no session of an engine without the capability, of an earlier start, or that is back on its server', async () => {
  await test.server('without');
  await turn('s');
  await finish('s');
  expect(await count()).toBe(0);
  await test.servers.remove(test.pool, { serverId: 'without' });
  await test.server('a', 2, CLOSES);
  for (const sessionId of ['restarted', 'back']) {
    await turn(sessionId);
    await finish(sessionId);
  }
  await turn('back');
  expect((await close()).closes).toMatchObject([{ sessionId: 'restarted' }]);
  expect(await count()).toBe(1);
  await finish('back');
  await test.server('a', 2, { ...CLOSES, instanceId: 'second start' });
  expect([(await close()).closes, await count()]).toMatchObject([[], 1]);
});

it('keeps 16,384 sessions at most, and gives 64 at a time', async () => {
  const { epoch } = await test.server('a', 2, CLOSES);
  const key = `${test.root}:sessions:ended`;
  const entries = Array.from({ length: 16_384 }, (_, n) => [n, `a|${epoch}|s${n}`]).flat();
  await test.redis.zadd(key, ...entries);
  await turn('last');
  await finish('last');
  expect([await count(), await test.redis.zscore(key, `a|${epoch}|s0`)]).toEqual([16_384, null]);
  const { closes, more } = await close();
  expect([closes.length, more]).toEqual([64, true]);
});
