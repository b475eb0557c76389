import type { Claim } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
const { redis, rounds, requests, workers } = test;
const job = 'job';
const MAX_BROKEN_ENDS = 4;
let broken: Claim;
let others: Claim[];

beforeEach(async () => {
  await test.fresh();
  await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 2, roundId: 'r', samples: 1 });
  [broken, ...others] = (await test.claim()) as [Claim, ...Claim[]];
});
afterAll(() => test.close());

const text = async (name: string) => {
  await redis.unlink(test.key(name));
  await redis.set(test.key(name), 'not a hash');
};
/**
 * Damage that no script can read, so that each end of the request of g0 raises an error; the number of such errors
 * before the next call ends the request; and the function that does the damage. A request that is no hash ends at the
 * first call, because no repeat can help.
 */
const BREAKS: [what: string, refused: number, how: () => Promise<unknown>][] = [
  [
    'a partial save that is no JSON',
    MAX_BROKEN_ENDS,
    () => redis.hset(test.key('request:job/g0/0'), 'savedSegment', 'no JSON', 'savedTokens', 5),
  ],
  ['a count of its group that is gone', MAX_BROKEN_ENDS, () => redis.hdel(test.key('group:job/g0'), 'finished')],
  ['a group that has another type', MAX_BROKEN_ENDS, () => text('group:job/g0')],
  ['a request that has another type', 0, () => text('request:job/g0/0')],
];
/** Fails an attempt without any tokens. */
const unclaimed = (claim: Claim) => {
  const why = { reason: 'unclaimed', countsAsFailure: false, retryable: true } as const;
  return requests.fail(test.pool, { ...test.fence(claim), tokens: 0, ...why });
};
const heldKey = () => test.key(`worker-attempts:w:${test.holder.workerEpoch}`);
const status = () => rounds.status(test.pool, { job });

async function expectItGoesOn(): Promise<void> {
  expect((await rounds.due(test.pool)).miscounted).toEqual([job]);
  expect((await rounds.due(test.pool)).lostEntries).toBeGreaterThan(0);
  const { state, shortfallGroups, returnedAttempts, lastFailures } = await status();
  expect({ state, shortfallGroups }).toEqual({ state: 'open', shortfallGroups: 1 });
  expect(returnedAttempts.internal).toBeGreaterThan(0);
  expect(lastFailures).toMatchObject([{ requestId: broken.requestId, reason: 'internal' }]);
  await rounds.submit(test.pool, { job, roundId: 'r', trainerEpoch: (await status()).trainerEpoch }, [
    { groupId: 'other', digest: 'd', samples: 1, maxTokens: 10, promptRef: 'p', sampling: '{}' },
  ]);
  for (const claim of [...others, ...(await test.claim())]) await test.complete(claim);
  expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 2 });
}

describe.each(BREAKS)('an attempt with %s', (_, refused, breakIt) => {
  it.each(['fail', 'complete'] as const)('ends, however often its worker repeats the call %s', async (word) => {
    await breakIt();
    const say = () => (word === 'fail' ? unclaimed(broken) : test.complete(broken));
    for (let said = 0; said < refused; said++) await expect(say()).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await say()).toMatchObject({ state: 'dropped' });
    expect((await unclaimed(others[0]!)).state).toBe('pending');
    others = await test.claim();
    expect(await redis.sismember(heldKey(), broken.requestId)).toBe(0);
    await expectItGoesOn();
  });

  it('ends no other sample of its message', async () => {
    await breakIt();
    const completes = [others[0]!, broken, others[0]!].map(({ requestId, attempt }) => {
      return { requestId, attempt, tokens: 0, finishReason: 'stop' as const };
    });
    const answers = await requests.completeMany(test.pool, { ...test.holder, completes });
    const finished = { state: 'finished', groupAccepted: true };
    const ending = refused === 0 ? { state: 'dropped' } : { code: 'INTERNAL' };
    expect(answers).toMatchObject([finished, ending, finished]);
  });

  it('ends when its worker dies', async () => {
    await breakIt();
    const { workerId, workerEpoch } = test.holder;
    await workers.deregister(test.pool, { workerId, workerEpoch });
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(test.pool));
    expect((await rounds.due(test.pool)).expiredEpochs).toBe(0);
    const registration = { workerId: 'w', registrationId: 'again', ttlMs: 600_000 };
    test.holder = { workerId: 'w', ...(await workers.register(test.pool, registration)) };
    others = [];
    await expectItGoesOn();
  });
});
