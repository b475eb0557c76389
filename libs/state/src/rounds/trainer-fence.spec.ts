import type { Epoch, TailPolicy } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { SnapshotStore } from '../snapshots/snapshot.store';
import { LongtailStore } from '../longtail/longtail.store';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { WeightStore } from '../weights/weight.store';
import { RoundStore } from './round.store';
import { readAndClose } from './test-pools.fixture';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
const rounds = new RoundStore(runner);
const longtail = new LongtailStore(runner);
const snapshots = new SnapshotStore(runner);
const weights = new WeightStore(runner);
const policy: TailPolicy = { name: 'resume', overProvision: 1, shortfall: 'accept-fewer', deadlineMs: 1 };
const job = 'job';
const FIRST = { job, roundId: 'r1' };
const sync = { syncId: 'sync', version: 2, mode: 'wait', deadlineMs: 60_000 } as const;
let pool: string;
let pools = 0;
let old: Epoch;

function open(roundId: string, trainerEpoch?: Epoch, newGroups = 1) {
  const plan = {
    planId: `plan-${roundId}`,
    step: 1,
    kind: 'short' as const,
    neededGroups: 1,
    takeGroups: 0,
    newGroups,
  };
  const parameters = { policy, weightVersion: 1, orphanAfterMs: 600_000, ...roundTerms(policy, plan, {}) };
  return rounds.open(pool, { job, roundId, trainerEpoch, ...plan, ...parameters });
}
const group = { groupId: 'g', digest: 'd', samples: 1, maxTokens: 10, promptRef: 'p', sampling: '{}' };
const cancel = (trainerEpoch: Epoch, mode: 'requeue' | 'drop') =>
  rounds.cancel(pool, { ...FIRST, trainerEpoch, mode, reason: 'test' });

/** All calls of a trainer about its job. Each of them is out of place in some state. */
const WORDS: Record<string, (trainerEpoch: Epoch) => Promise<unknown>> = {
  'round.next': (trainerEpoch) => rounds.progress(pool, { job, trainerEpoch }),
  'round.open of the same': (trainerEpoch) => open('r1', trainerEpoch),
  'round.open with other parameters': (trainerEpoch) => open('r1', trainerEpoch, 2),
  'round.open of another': (trainerEpoch) => open('r2', trainerEpoch),
  'round.submit, checked': (trainerEpoch) => rounds.checkSubmit(pool, { ...FIRST, trainerEpoch }, [group]),
  'round.submit': (trainerEpoch) => rounds.submit(pool, { ...FIRST, trainerEpoch }, [group]),
  'round.status': (trainerEpoch) => rounds.status(pool, { ...FIRST, trainerEpoch }),
  'round.status of an unknown one': (trainerEpoch) => rounds.status(pool, { job, roundId: 'r9', trainerEpoch }),
  'round.results': (trainerEpoch) => rounds.results(pool, { ...FIRST, limit: 1, trainerEpoch }),
  'round.close': (trainerEpoch) => rounds.close(pool, { ...FIRST, trainerEpoch, cursor: 'a.0.0.a.' }),
  'round.cancel': (trainerEpoch) => cancel(trainerEpoch, 'requeue'),
  'longtail.drop': (trainerEpoch) => longtail.drop(pool, { job, trainerEpoch, reason: 'test', groupIds: ['g'] }),
  'job.snapshot': (trainerEpoch) => snapshots.save(pool, { job, trainerEpoch, tag: 't' }),
  'job.restore': (trainerEpoch) => snapshots.restore(pool, { job, trainerEpoch, tag: 'unknown' }),
  'weights.begin of the same': (trainerEpoch) => weights.begin(pool, { ...sync, job, trainerEpoch }),
  'weights.begin with other parameters': (trainerEpoch) =>
    weights.begin(pool, { ...sync, mode: 'keep', job, trainerEpoch }),
  'weights.begin of another': (trainerEpoch) =>
    weights.begin(pool, { ...sync, syncId: 'sync-2', version: 1, job, trainerEpoch }),
  'weights.commit': (trainerEpoch) =>
    weights.end(pool, { syncId: 'sync', outcome: 'committed', reason: 'asked', trainerEpoch }),
  'weights.rollback': (trainerEpoch) =>
    weights.end(pool, { syncId: 'sync', outcome: 'rolled-back', reason: 'asked', trainerEpoch }),
};

/** Calls of the trainer that took over, before the earlier trainer continues. */
const STATES: Record<string, (trainerEpoch: Epoch) => Promise<unknown>> = {
  'is open': async () => undefined,
  'is closed, and the weights are changed': async (trainerEpoch) => {
    await expect.poll(async () => (await rounds.expire(pool)).rounds).toHaveLength(1);
    await readAndClose(rounds, pool, { ...FIRST, trainerEpoch });
    await WORDS['weights.commit']!(trainerEpoch);
  },
  'is cancelled, and the weights are as before': async (trainerEpoch) => {
    await cancel(trainerEpoch, 'drop');
    await WORDS['weights.rollback']!(trainerEpoch);
  },
};

beforeEach(async () => {
  pool = `fence-${pools++}`;
  ({ trainerEpoch: old } = await open('r1'));
  await WORDS['weights.begin of the same']!(old);
});
afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

describe('a trainer whose job was taken over is fenced in every call when its round', () => {
  it.each(Object.entries(STATES))('%s', async (_when, goOn) => {
    const { trainerEpoch } = await rounds.takeover(pool, { job, takeoverId: 'second' });
    await goOn(trainerEpoch);
    const { stamp: _, ...before } = await rounds.status(pool, { job });
    const answers = Object.entries(WORDS).map(async ([word, say]) => {
      await expect(say(old), word).rejects.toMatchObject({ code: 'FENCED', field: 'trainerEpoch' });
    });
    await Promise.all(answers);
    await expect(open('r1'), 'a repeat of the first word').rejects.toMatchObject({ code: 'FENCED' });
    expect(await rounds.status(pool, { job })).toMatchObject(before);
  });
});

describe('a takeover that found no job', () => {
  const mine = () => rounds.takeover(pool, { job, takeoverId: 'mine' });
  beforeEach(async () => {
    pool = `fence-${pools++}`;
    await expect(mine()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND', details: { stamp: expect.any(String) } });
  });

  it('does not fence its own trainer when a copy of it arrives late', async () => {
    const { trainerEpoch } = await open('r1');
    await expect(mine()).rejects.toMatchObject({ code: 'FENCED', field: 'takeoverId' });
    expect(await rounds.status(pool, { ...FIRST, trainerEpoch })).toMatchObject({ state: 'open', trainerEpoch });
    // A trainer that is started later takes the job over.
    const { trainerEpoch: later } = await rounds.takeover(pool, { job, takeoverId: 'later' });
    expect(later).not.toBe(trainerEpoch);
  });

  it('is one of the last 1,000 that are remembered', async () => {
    for (let number = 0; number < 1_000; number += 1) {
      await rounds.takeover(pool, { job: `none-${number}`, takeoverId: 'other' }).catch(() => undefined);
    }
    expect(await redis.zcard(`${runner.rootKey(pool)}:jobs:early-takeovers`)).toBe(1_000);
    const { trainerEpoch } = await open('r1');
    expect((await mine()).trainerEpoch).not.toBe(trainerEpoch);
  });

  it('gets the epoch of the job that its trainer has made under this id', async () => {
    const args = { job, takeoverId: 'mine', groups: [], isLast: true, step: 1, groupIds: [] };
    const { trainerEpoch } = await rounds.reconcile(pool, args);
    expect(await mine()).toMatchObject({ trainerEpoch, stepsTrained: 1 });
  });
});

it('lets a reader without an epoch plan, and refuses a trainer of an unknown job', async () => {
  expect(await rounds.progress(pool, { job })).toMatchObject({ openRoundId: 'r1' });
  expect(await rounds.progress(pool, { job, trainerEpoch: old })).toMatchObject({ openRoundId: 'r1' });
  await expect(rounds.progress(pool, { job: 'none', trainerEpoch: 'e1' })).rejects.toMatchObject({
    code: 'JOB_NOT_FOUND',
  });
});
