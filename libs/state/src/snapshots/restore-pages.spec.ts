import { afterAll, expect, it } from 'vitest';
import { AbortStore } from '../aborts/abort.store';
import { TestPools } from '../rounds/test-pools.fixture';
import { SnapshotStore } from './snapshot.store';

const test = new TestPools();
const aborts = new AbortStore(test.runner);
const snapshots = new SnapshotStore(test.runner);
afterAll(() => test.close());

/** Number of unknown groups: more than one page of a restore checks. */
const WAITING = 300;

async function abortUnknown(job: string): Promise<void> {
  const requestIds = Array.from({ length: WAITING }, (_, index) => `${job}/unknown${index}/0`);
  const abortId = `abort-${job}`;
  await aborts.begin(test.pool, { abortId, selector: { requestIds }, reason: 'test', keptMs: 60_000 });
  for (let more = true; more;) ({ more } = await aborts.select(test.pool, { abortId }));
}

it('forgets aborts that wait for groups of the job, in phases that the previous release can continue', async () => {
  await test.fresh();
  const round = await test.open({ policy: { name: 'wait' }, neededGroups: 1, samples: 1 });
  await test.complete((await test.claim())[0]!);
  await test.readAndClose(round);
  await test.rounds.fold(test.pool, round);
  const { job, trainerEpoch } = round;
  await snapshots.save(test.pool, { job, trainerEpoch, tag: 'a' });
  await abortUnknown(job);
  await abortUnknown('other');

  const phases: (string | null)[] = [];
  for (let state = ''; state !== 'restored';) {
    ({ state } = await snapshots.restore(test.pool, { job, trainerEpoch, tag: 'a' }));
    phases.push(await test.redis.hget(test.key(`job:${job}`), 'restorePhase'));
  }
  expect(new Set(phases)).toEqual(new Set(['empty', 'forget', 'fill', null]));
  const left = await test.redis.zrange(test.key('aborts:tombstones'), '0', '-1');
  expect(left).toHaveLength(WAITING);
  expect(left.filter((id) => !id.startsWith('other/'))).toEqual([]);
});
