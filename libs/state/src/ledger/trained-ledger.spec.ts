import { afterAll, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { LedgerStore } from './ledger.store';
import { promptHash, PromptMemoryStore } from './prompt-memory.store';

const test = new TestPools();
afterAll(() => test.close());

it('learns nothing from an accepted group whose samples Redis has lost', async () => {
  await test.fresh();
  const [kept, lost] = [promptHash('kept'), promptHash('lost')];
  const policy = { name: 'wait' as const, overProvision: 1 };
  const round = await test.open({ policy, neededGroups: 2, samples: 1, promptHash: kept });
  await test.redis.hset(test.key('round:job/r1'), 'records', 1);
  const claims = await test.claim();
  for (const claim of claims) await test.complete(claim, 7);
  const { requestId, groupId } = claims[0]!;
  await test.redis.del(test.key(`request:${requestId}`));
  await test.redis.hset(test.key(`group:job/${groupId}`), 'promptHash', lost);
  await new LedgerStore(test.runner).count(test.pool, round);
  const known = await new PromptMemoryStore(test.runner).lengths(test.pool, [kept, lost]);
  expect(known).toEqual([expect.objectContaining({ hash: kept, samples: 1 })]);
  expect(await test.redis.get(test.key('round-recorded:job/r1'))).toMatch(/^\d+:7;$/);
});
