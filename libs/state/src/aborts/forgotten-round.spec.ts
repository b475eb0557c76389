import { afterAll, beforeEach, expect, it } from 'vitest';
import { LedgerStore } from '../ledger';
import { TestPools } from '../rounds/test-pools.fixture';
import { AbortStore } from './abort.store';

const test = new TestPools();
beforeEach(() => test.fresh());
afterAll(() => test.close());

it('counts the tokens of an aborted group whose round is forgotten as waste of its job', async () => {
  const round = await test.open({
    policy: { name: 'resume', overProvision: 2 },
    neededGroups: 1,
    newGroups: 2,
    samples: 1,
  });
  const [first, cut] = await test.claim();
  await test.complete(first!);
  await test.fail(cut!, 4);
  await test.readAndClose(round);
  expect(await test.rounds.fold(test.pool, round)).toEqual({ more: false });
  // A job forgets a round after sixteen further rounds.
  await test.redis.unlink(test.key('round:job/r1'), test.key('round-ledger:job/r1'));
  await test.redis.zrem(test.key('job-rounds:job'), 'r1');

  const aborts = new AbortStore(test.runner);
  const selector = { job: 'job', groupId: 'g1' };
  await aborts.begin(test.pool, { abortId: 'a', selector, reason: 'test', keptMs: 60_000 });
  await aborts.select(test.pool, { abortId: 'a' });
  const { counters } = await new LedgerStore(test.runner).read(test.pool, { job: 'job' });
  expect(counters).toMatchObject({ 'waste.aborted': 4, 'cut.length.4': 1 });
  expect(await test.redis.exists(test.key('round:job/r1')), 'the round is not created again').toBe(0);
});
