import type { Claim, FailReason, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { buildSegment, TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
const POLICY: TailPolicy = { name: 'wait', overProvision: 1, maxFailures: 2 };

beforeEach(async () => {
  await test.fresh();
  await test.open({ policy: POLICY, neededGroups: 1, samples: 1 });
});
afterAll(() => test.close());

const claim = async () => (await test.claim(1))[0]!;
const register = (serverId: string, instanceId: string) =>
  test.servers.register(test.pool, {
    serverId,
    instanceId,
    endpoint: `http://${serverId}:8000`,
    dialect: 'vllm',
    probe: false,
    maxInflight: 9,
    weight: 1,
  });
interface Ending {
  tokens?: number;
  deadlineMs?: number;
  isUnserved?: boolean;
  reason?: FailReason;
}
/** Ends the next attempt of the request on this server, and returns the state of the request. */
async function endOn(
  serverId: string,
  { tokens = 0, deadlineMs, isUnserved = false, reason = isUnserved ? 'no-server' : 'engine-error' }: Ending = {},
) {
  const taken = await claim();
  const { state } = await test.requests.fail(test.pool, {
    ...test.fence(taken),
    ...(tokens > 0 ? buildSegment(taken, tokens) : { tokens }),
    reason,
    retryable: true,
    countsAsFailure: !isUnserved,
    isUnserved,
    deadlineMs,
    run: { serverId, weightVersion: 1, leasedMs: 0, endedMs: 1 },
  });
  return state;
}

it('counts failures on different servers, but a server only once', async () => {
  for (const serverId of ['a', 'a', 'b', 'a', 'b', 'a']) expect(await endOn(serverId)).toBe('pending');
  expect(await endOn('c')).toBe('failed');
});

it('counts a server that has restarted as another one, so that a request that kills engines fails', async () => {
  for (const start of ['first', 'second']) {
    await register('a', start);
    expect(await endOn('a')).toBe('pending');
    expect(await endOn('a')).toBe('pending');
  }
  await register('a', 'third');
  expect(await endOn('a')).toBe('failed');
});

it('counts anew after a further token that is kept', async () => {
  for (const serverId of ['a', 'b', 'c', 'd', 'e']) expect(await endOn(serverId, { tokens: 1 })).toBe('pending');
  expect(await endOn('f')).toBe('pending');
  expect(await endOn('g')).toBe('failed');
});

it('does not count servers that do not serve, and gives the next claim the servers to avoid', async () => {
  for (const serverId of ['a', 'b', 'c', 'd', 'b']) expect(await endOn(serverId, { isUnserved: true })).toBe('pending');
  const next: Claim = await claim();
  expect(next).toMatchObject({ setbacks: 5, avoidServers: ['a', 'c', 'd', 'b'] });
  await test.fail(next, 1);
  const later = await claim();
  expect([later.setbacks, later.avoidServers]).toEqual([undefined, undefined]);
});

it('fails a request that the same server fails until the deadline', async () => {
  expect(await endOn('a', { deadlineMs: 600_000 })).toBe('pending');
  expect(await endOn('a', { deadlineMs: 600_000 })).toBe('pending');
  expect(await endOn('a', { deadlineMs: 0 })).toBe('failed');
});

describe('a request whose engine answers in another dialect', () => {
  const answerWrongly = (serverId: string, tokens = 0) => endOn(serverId, { reason: 'engine-rejected', tokens });

  it('fails when the only server that is in use answers so without a token', async () => {
    await register('a', 'first');
    expect(await answerWrongly('a', 1)).toBe('pending');
    await test.redis.zrem(test.key('servers:watched'), 'a');
    expect(await answerWrongly('a')).toBe('pending');
    await register('a', 'second');
    expect(await answerWrongly('a')).toBe('failed');
  });

  it('continues while another server of the pool, or a new start, has not answered so', async () => {
    await register('a', 'first');
    await register('b', 'first');
    for (let calls = 0; calls < 4; calls++) expect(await answerWrongly('a')).toBe('pending');
    await register('a', 'second');
    expect(await answerWrongly('b')).toBe('pending');
    expect(await answerWrongly('a')).toBe('failed');
  });

  it('continues while another server has failed, and fails when that server is removed', async () => {
    await register('a', 'first');
    const { epoch } = await register('b', 'first');
    await test.servers.fence(test.pool, { serverId: 'b', epoch, reason: 'test' });
    expect(await answerWrongly('a')).toBe('pending');
    await test.servers.remove(test.pool, { serverId: 'b' });
    expect(await answerWrongly('a')).toBe('failed');
  });
});
