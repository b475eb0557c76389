import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';

const test = new TestPools();
beforeEach(() => test.fresh());
afterAll(() => test.close());

it('gives out no more than the concurrency of the round, whichever groups take turns', async () => {
  const policy = { name: 'fixed-concurrency' as const, overProvision: 2, concurrency: 3 };
  await test.open({ policy, neededGroups: 2, newGroups: 4 });
  const ids = async () => (await test.claim(8)).map(({ requestId }) => requestId);
  const claims = await test.claim(8);
  expect(claims.map(({ requestId }) => requestId)).toEqual(['job/g0/0', 'job/g0/1', 'job/g1/0']);
  expect(await ids()).toEqual([]);
  for (const index of [0, 2, 1]) await test.fail(claims[index]!);
  expect(await ids()).toEqual(['job/g0/0', 'job/g1/0', 'job/g0/1']);
  expect(await test.rounds.status(test.pool, { job: 'job' })).toMatchObject({ requestsInFlight: 3 });
});
