import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
const SERVERS = ['a', 'b', 'c', 'd', 'e'];
const MAX_FAILURES = 2;

beforeEach(async () => {
  await test.fresh();
  for (const serverId of SERVERS) await start(serverId, 'first');
  const policy = { name: 'wait' as const, overProvision: 1, maxFailures: MAX_FAILURES };
  await test.open({ policy, neededGroups: 1, samples: 2 });
});
afterAll(() => test.close());

const start = (serverId: string, instanceId: string) =>
  test.servers.register(test.pool, {
    serverId,
    instanceId,
    endpoint: `http://${serverId}:8000`,
    dialect: 'vllm',
    probe: false,
    maxInflight: 9,
    weight: 1,
    weightVersion: 1,
  });

/** Calls a server for a request, and releases it with this outcome. @returns the reply to the release */
async function call(serverId: string, requestId: string, outcome: 'failed' | 'finished' = 'failed') {
  const acquireId = test.unique('a');
  const wanted = { acquireId, requestId, boundServerId: serverId, ...test.holder };
  expect(await test.leases.acquire(test.pool, [wanted])).toMatchObject({ results: [{ serverId }] });
  return test.leases.release(test.pool, [{ acquireId, outcome }]);
}

/** All servers answer probes, at a later time than every call so far. */
async function probe(): Promise<void> {
  const timeMs = async () => {
    const [seconds, micros] = await test.redis.time();
    return Math.floor(Number(seconds) * 1_000 + Number(micros) / 1_000);
  };
  const before = await timeMs();
  await expect.poll(timeMs, { interval: 1 }).toBeGreaterThan(before);
  await test.servers.recordProbes(test.pool, SERVERS);
}

/** The server fails the next attempt, as its worker reports. @returns the state of the request */
async function failOn(serverId: string, deadlineMs?: number) {
  const [taken] = await test.claim(1);
  await call(serverId, taken!.requestId);
  const { state } = await test.requests.fail(test.pool, {
    ...test.fence(taken!),
    tokens: 0,
    reason: 'engine-error',
    retryable: true,
    countsAsFailure: true,
    deadlineMs,
    run: { serverId, weightVersion: 1, leasedMs: 0, endedMs: 1 },
  });
  return state;
}

it('counts no failure of a request while most servers fail other prompts, until the deadline of the request', async () => {
  for (const serverId of SERVERS.slice(0, 3)) await call(serverId, 'job/other/0');
  await probe();
  for (const serverId of [...SERVERS, ...SERVERS]) expect(await failOn(serverId, 600_000)).toBe('pending');
  expect(await failOn('a', 0)).toBe('failed');
});

it('counts failures again once calls of other prompts finish', async () => {
  for (const serverId of SERVERS) await call(serverId, 'job/other/0');
  await probe();
  for (const serverId of SERVERS) expect(await failOn(serverId)).toBe('pending');
  for (const serverId of SERVERS) await call(serverId, 'job/other/0', 'finished');
  await probe();
  // The two samples of the group take turns.
  const states = [];
  for (const serverId of ['a', 'a', 'b', 'b', 'c']) states.push(await failOn(serverId));
  expect(states).toEqual(['pending', 'pending', 'pending', 'pending', 'failed']);
});

it('counts failures of a prompt that all servers fail while they serve others, in all samples of the prompt', async () => {
  for (const serverId of SERVERS) {
    await call(serverId, 'job/g0/0');
    await call(serverId, 'job/g0/1');
  }
  await probe();
  const states = [];
  for (const serverId of ['a', 'a', 'b', 'b', 'c']) states.push(await failOn(serverId));
  expect(states).toEqual(['pending', 'pending', 'pending', 'pending', 'failed']);
});

it('counts failures by engines that die of the request with the calls of other prompts', async () => {
  const states = [];
  for (const serverId of ['a', 'a', 'b', 'b', 'c']) {
    await call(serverId, 'job/other/0');
    states.push(await failOn(serverId));
  }
  expect(states).toEqual(['pending', 'pending', 'pending', 'pending', 'failed']);
  await probe();
  // A new start has failed nothing.
  for (const serverId of ['a', 'b', 'c']) await start(serverId, 'second');
  expect(await test.redis.hlen(test.key('servers:failing'))).toBe(0);
});

it('says at the release of a failed call whether most servers fail other prompts, once all have answered a probe', async () => {
  const evidence = async (serverId: string, requestId: string, outcome: 'failed' | 'finished' = 'failed') => {
    const { results, unheard } = await call(serverId, requestId, outcome);
    return [results[0]!.mostServersFail, unheard];
  };
  expect(await evidence('a', 'poisoned')).toEqual([undefined, undefined]);
  expect(await evidence('a', 'other')).toEqual([undefined, undefined]);
  expect(await evidence('b', 'other')).toEqual([undefined, undefined]);
  // The first server fails several prompts, the next two only this one.
  expect(await evidence('c', 'other')).toEqual([undefined, undefined]);
  expect(await evidence('b', 'poisoned')).toEqual([undefined, true]);
  await probe();
  expect(await evidence('d', 'poisoned')).toEqual([true, undefined]);
  expect(await evidence('d', 'other', 'finished')).toEqual([undefined, undefined]);
  expect(await evidence('a', 'other', 'finished')).toEqual([undefined, undefined]);
  expect(await evidence('d', 'poisoned')).toEqual([undefined, undefined]);
});
