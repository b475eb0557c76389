import { afterAll, beforeEach, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { SnapshotStore } from './snapshot.store';

const test = new TestPools();
const snapshots = new SnapshotStore(test.runner);
const policy = { name: 'resume' as const, overProvision: 2 };
beforeEach(() => test.fresh());
afterAll(() => test.close());

it('refuses a tag for another state, such as more tokens after a round that gave everything back', async () => {
  const first = await test.open({ policy, neededGroups: 1, newGroups: 2, samples: 1 });
  const [done, cut] = await test.claim();
  await test.complete(done!);
  await test.fail(cut!, 3);
  await test.readAndClose(first);
  await test.rounds.fold(test.pool, first);
  const { job, trainerEpoch } = first;
  const save = (tag: string) => snapshots.save(test.pool, { job, trainerEpoch, tag });
  expect(await save('a')).toMatchObject({ state: 'complete', groups: 1 });
  expect(await save('a')).toMatchObject({ state: 'complete', groups: 1 });

  const long = await test.open({ policy, neededGroups: 1, newGroups: 0, takeGroups: 1, step: 2, trainerEpoch });
  const [again] = await test.claim();
  await test.rounds.cancel(test.pool, { ...long, mode: 'requeue', reason: 'test' });
  await test.fail(again!, 2);
  await test.rounds.cut(test.pool, { ...long, cursor: 0 });
  await test.rounds.fold(test.pool, long);
  // Steps, groups and the length of the queue are unchanged.
  await expect(save('a')).rejects.toMatchObject({ code: 'SNAPSHOT_EXISTS', field: 'tag' });
  expect(await save('b')).toMatchObject({ state: 'complete', groups: 1 });
});
