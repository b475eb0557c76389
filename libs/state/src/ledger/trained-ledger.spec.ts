import { afterAll, expect, it } from 'vitest';
import { isRecorded } from '@broomwagon/policies';
import { RECORDED_SAMPLES } from '../../../policies/src/auto/recorded-groups';
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

it('records every third group of a round that has three times too many samples, others in each step', async () => {
  const [groups, neededGroups] = [9, 3 * RECORDED_SAMPLES];
  const firsts = new Set<number>();
  for (const step of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await test.fresh();
    const round = await test.open({ policy: { name: 'wait', overProvision: 1 }, neededGroups: groups, samples: 1 });
    for (const [position, claim] of (await test.claim(groups)).entries()) await test.complete(claim, position + 1);
    await test.redis.hset(test.key('round:job/r1'), { records: 1, neededGroups, step });
    await new LedgerStore(test.runner).count(test.pool, round);
    const recorded = await test.redis.get(test.key('round-recorded:job/r1'));
    const kept = [...recorded!.matchAll(/:(\d+);/g)].map(([, tokens]) => Number(tokens) - 1);
    const positions = Array.from({ length: groups }, (_, position) => position);
    expect(kept).toEqual(positions.filter((position) => isRecorded(position, 1, { step, neededGroups })));
    expect(kept).toHaveLength(groups / 3);
    firsts.add(kept[0]!);
  }
  expect(firsts).toEqual(new Set([0, 1, 2]));
});
