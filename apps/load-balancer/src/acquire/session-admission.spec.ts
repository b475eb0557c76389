import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers, type TestWorker } from '../load-balancer.fixture';

let lb: LoadBalancers;
let worker: TestWorker;
beforeAll(async () => {
  lb = await openLoadBalancers(2);
});
afterAll(() => lb.close());
beforeEach(async () => {
  lb.nextPool();
  worker = await lb.worker();
  await lb.call('pool.configure', { sessionAdmission: 'kv' });
  await lb.server('a');
});

let sequence = 0;
const turn = (sessionId: string, contextTokens: number, more = {}) => {
  const acquireId = `acquire-${++sequence}`;
  return lb.call('lb.acquire', { acquireId, requestId: acquireId, sessionId, contextTokens, ...worker, ...more });
};
/** The KV memory that the test engine reports, tokens. */
const KV_TOKENS = 16_000;

it('takes the KV memory from the engine, answers a waiting session when another one ends, and shows who waits', async () => {
  await expect.poll(async () => (await lb.call('server.list', {})).servers[0]!.load?.kvTokens).toBe(KV_TOKENS);
  const first = await turn('first', 12_000);
  await expect(turn('second', 12_000)).rejects.toMatchObject({
    code: 'SERVERS_FULL',
    message: expect.stringContaining('lb.finish-session'),
    details: { reason: 'kv-full' },
    retryable: true,
  });
  const second = turn('second', 12_000, { waitMs: 30_000 });
  await expect.poll(async () => (await lb.call('lb.status', {})).newSessionWaiters).toBe(1);
  await lb.call('lb.release', { leaseId: first.leaseId, outcome: 'finished', tokens: 500 });
  const listed = await lb.call('lb.sessions', {});
  expect(listed.sessions).toMatchObject([{ sessionId: 'first', contextTokens: 12_500 }]);
  expect(await lb.call('lb.finish-session', { sessionId: 'first' })).toEqual({ finished: true });
  expect((await second).decision).toMatchObject({ branch: 'waited', via: 'admitted' });
  expect(await lb.call('lb.finish-session', { sessionId: 'first' })).toEqual({ finished: false });
});

it('answers typed errors for impossible tokens, another parent and a circle of parents', async () => {
  await expect(turn('s', 1e12)).rejects.toMatchObject({ code: 'VALIDATION_FAILED', details: expect.anything() });
  await turn('child', 10, { parentSessionId: 'parent' });
  const conflict = { code: 'SESSION_CONFLICT', field: 'parentSessionId', retryable: false };
  await expect(turn('child', 10, { parentSessionId: 'other' })).rejects.toMatchObject(conflict);
  await expect(turn('parent', 10, { parentSessionId: 'child' })).rejects.toMatchObject(conflict);
  const long = `${'ü'.repeat(200)}${'/'.repeat(80)}`;
  const named = await turn(long, 10, { parentSessionId: 'parent/~a' });
  await lb.call('lb.release', { leaseId: named.leaseId, outcome: 'finished' });
  const { sessions } = await lb.call('lb.sessions', {});
  expect(sessions.find(({ sessionId }) => sessionId === long)).toMatchObject({ parentSessionId: 'parent/~a' });
});

it('learns what to expect of sessions from their turns', async () => {
  for (let n = 0; n < 3; n++) {
    const { leaseId } = await turn('s', 1_000 * 2 ** n);
    await lb.call('lb.release', { leaseId, outcome: 'finished', tokens: 10 });
  }
  await lb.call('lb.finish-session', { sessionId: 's' });
  const outlook = () => lb.redis.hgetall(`${lb.pool.slice(0, lb.pool.lastIndexOf('-'))}:{${lb.pool}}:sessions:outlook`);
  await expect.poll(async () => Number((await outlook()).growth12)).toBeGreaterThan(0);
});
