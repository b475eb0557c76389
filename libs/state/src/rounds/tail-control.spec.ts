import { afterAll, expect, it } from 'vitest';
import { TestPools } from './test-pools.fixture';

const test = new TestPools();
afterAll(() => test.close());

it('stores the choices of an adaptive policy for closed rounds, but not for cancelled ones', async () => {
  await test.fresh();
  const policy = { name: 'resume' as const, overProvision: 1.5, overProvisionMode: 'adaptive' as const };
  const control = async () => (await test.rounds.progress(test.pool, { job: 'job' })).control;
  const cancelled = await test.open({ policy, neededGroups: 1, samples: 1 });
  await test.rounds.cancel(test.pool, { ...cancelled, mode: 'drop', reason: 'none' });
  expect(await control()).toBeUndefined();

  const round = await test.open({
    policy,
    neededGroups: 1,
    samples: 1,
    trainerEpoch: cancelled.trainerEpoch,
    roundId: 'again',
  });
  for (const claim of await test.claim()) await test.complete(claim);
  expect(await control()).toBeUndefined();
  await test.readAndClose(round);
  expect(await control()).toEqual({ overProvision: { '': 1.5 } });
});
