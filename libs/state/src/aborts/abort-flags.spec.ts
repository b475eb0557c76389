import type { Claim } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { AbortStore } from './abort.store';
import type { AbortSelector } from './abort.store';

// The flag of an abort of a round or a job holds from its first moment on, before any page of its selection.
const test = new TestPools();
const { rounds } = test;
const aborts = new AbortStore(test.runner);
const job = 'job';

beforeEach(() => test.fresh());
afterAll(() => test.close());

const flag = (selector: AbortSelector, abortId: string) =>
  aborts.begin(test.pool, { abortId, selector, reason: 'test', keptMs: 600_000 });
async function abort(selector: AbortSelector, abortId: string): Promise<void> {
  await flag(selector, abortId);
  for (let more = true; more;) ({ more } = await aborts.select(test.pool, { abortId }));
}
const readResults = async (abortId: string) =>
  (await aborts.results(test.pool, { abortId, cursor: 0, limit: 128 })).results;
const status = () => rounds.status(test.pool, { job });

it('lets the flag of an abort win over a later abort of one sample, after which its group would be accepted', async () => {
  await test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 1, samples: 2, minSamples: 1 });
  const [first, second] = (await test.claim(2)) as [Claim, Claim];
  await test.complete(first);
  await flag({ job }, 'all');
  await abort({ requestIds: [second.requestId], scope: 'sample' }, 'alone');
  expect(await status()).toMatchObject({ acceptedGroups: 0, droppedGroups: 1 });
  expect((await readResults('all')).map(({ requestId }) => requestId)).toEqual([first.requestId, second.requestId]);
  expect(await readResults('alone')).toEqual([{ requestId: second.requestId, outcome: 'aborting' }]);
});

it('drops a finished group that waits for a place when its job is aborted, though a place becomes free', async () => {
  // A group of the queue that must be taken has a place of its own.
  const policy = { name: 'resume', overProvision: 2, maxCuts: 1 } as const;
  const round = await test.open({ policy, samples: 1, neededGroups: 1, newGroups: 2 });
  const [cut, other] = (await test.claim(2)) as [Claim, Claim];
  await test.save(cut, 1);
  await test.complete(other);
  await test.fail(cut, 1);
  await test.readAndClose(round);
  for await (const _ of rounds.whileMore('fold', test.pool, round));
  const { trainerEpoch } = round;
  await test.open({ policy, samples: 1, neededGroups: 2, takeGroups: 1, step: 2, trainerEpoch });
  for (const claim of await test.claim()) if (claim.groupId !== cut.groupId) await test.complete(claim);
  expect(await status()).toMatchObject({ acceptedGroups: 1, pinnedGroups: 1, heldGroups: 1 });
  await abort({ job }, 'all');
  expect(await status()).toMatchObject({ state: 'open', acceptedGroups: 1, heldGroups: 0, droppedGroups: 2 });
});

it('does not replace the flag of a cancel, which holds for later groups, by the flag of an abort', async () => {
  const policy = { name: 'resume', overProvision: 1 } as const;
  const plan = { planId: 'p', step: 1, kind: 'short', neededGroups: 2, takeGroups: 0, newGroups: 2 } as const;
  const terms = { ...roundTerms(policy, plan, {}), policy, weightVersion: 1, orphanAfterMs: 600_000 };
  const { trainerEpoch } = await rounds.open(test.pool, { job, roundId: 'r1', ...plan, ...terms });
  const round = { job, roundId: 'r1', trainerEpoch };
  const group = { samples: 1, maxTokens: 10, promptRef: 'prompt', sampling: '{}', digest: 'd' };
  await rounds.submit(test.pool, round, [{ ...group, groupId: 'g0' }]);
  await rounds.cancel(test.pool, { ...round, mode: 'drop', reason: 'test' });
  await abort({ job, roundId: 'r1' }, 'late');
  // The last page of a submit that was under way.
  await rounds.submit(test.pool, round, [{ ...group, groupId: 'g1' }]);
  await rounds.cut(test.pool, { ...round, cursor: 0 });
  expect(await rounds.jobStatus(test.pool, { job })).toMatchObject({
    droppedGroups: 2,
    longtail: { groups: 0, settlingGroups: 0 },
  });
});
