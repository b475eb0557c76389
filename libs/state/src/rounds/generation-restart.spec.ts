import { mkdtemp, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TailPolicy } from '@broomwagon/contracts';
import { startRedis, startSetBackRedis } from '@broomwagon/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { PoolAudit } from '../audit';
import { KeySnapshot } from './key-snapshot.fixture';
import { TestPools } from './test-pools.fixture';

const AOF = join('appendonlydir', 'appendonly.aof.1.incr.aof');
const job = 'job';
const policy: TailPolicy = { name: 'resume', overProvision: 1 };

/** The test's own Redis, which can lose all writes after a mark. */
interface LosingRedis {
  url: string;
  /** Marks the moment after which all writes are lost. */
  mark(test: TestPools): Promise<void>;
  /** Replaces the process, or sets its data back to the mark. */
  lose(): Promise<unknown>;
  stop(): Promise<void>;
}

/** Redis may answer before it writes to its file, while it waits for the disk. */
async function untilWritten({ redis }: TestPools): Promise<void> {
  await expect.poll(() => redis.info('persistence')).not.toMatch(/aof_buffer_length:[1-9]/);
}

async function restarted(losesData: boolean): Promise<LosingRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'broomwagon-generation-'));
  const redis = await startRedis({ folder });
  let kept = 0;
  return {
    url: redis.url,
    mark: async (test) => {
      await untilWritten(test);
      ({ size: kept } = await stat(join(folder, AOF)));
    },
    lose: async () => {
      await redis.kill();
      if (losesData) await truncate(join(folder, AOF), kept);
      await redis.restart();
    },
    stop: () => redis.stop(),
  };
}

async function failedOver(): Promise<LosingRedis> {
  const redis = await startSetBackRedis('failover');
  let markedMs = 0;
  return {
    url: redis.url,
    mark: async (test) => {
      // All earlier writes have been sent to the replica when these commands are answered.
      for (const _ of [1, 2, 3]) await test.redis.ping();
      markedMs = performance.now();
    },
    lose: () => redis.setBack(performance.now() - markedMs),
    stop: () => redis.stop(),
  };
}

async function rewritten(): Promise<LosingRedis> {
  const redis = await startRedis();
  let snapshot: KeySnapshot;
  return {
    url: redis.url,
    mark: async (test) => void (snapshot = await KeySnapshot.of(test.redis, test.key(''))),
    lose: () => snapshot.restore(),
    stop: () => redis.stop(),
  };
}

/** Kinds of faults: name, Redis, and whether writes after the mark are lost. */
const KINDS: [string, () => Promise<LosingRedis>, boolean][] = [
  ['is restarted with all its data', () => restarted(false), false],
  ['is restarted with older data', () => restarted(true), true],
  ['fails over to a replica that lags', failedOver, true],
  ['goes on in the same process with older data', rewritten, true],
];

describe('the generation of a pool', () => {
  let redis: LosingRedis | undefined;
  let test: TestPools | undefined;
  afterEach(async () => {
    test?.redis.disconnect();
    await redis?.stop();
  });

  it.each(KINDS)('is renewed once when Redis %s, for replicas and trainers', async (_, start, isLost) => {
    redis = await start();
    test = new TestPools(redis.url);
    const { rounds } = test;
    await test.fresh();
    const { pool } = test;
    let round = await test.open({ policy, neededGroups: 2, samples: 1 });
    const generations: string[] = [];
    for (const turn of [1, 2]) {
      const { stamp: early } = await rounds.due(pool);
      generations.push(early.split('.')[0]!);
      await redis.mark(test);
      // The trainer trains this step, which Redis may lose.
      for (const claim of await test.claim()) await test.complete(claim);
      const { groups, cursor } = await rounds.results(pool, { ...round, limit: 9 });
      const { stamp } = await rounds.close(pool, { ...round, cursor });
      expect(rounds.seenStamp(pool)).toBe(stamp);
      await untilWritten(test);
      await redis.lose();

      // A replica that has seen the stamp reports it with its next read of the pool, which renews the generation once.
      expect((await rounds.due(pool, { stamp: rounds.seenStamp(pool) })).renewed).toBe(true);
      expect((await rounds.due(pool, { stamp: rounds.seenStamp(pool) })).renewed).toBeUndefined();
      const changed = { code: 'GENERATION_CHANGED' };
      for (const late of [early, stamp]) {
        await expect(rounds.status(pool, { ...round, stamp: late })).rejects.toMatchObject(changed);
      }
      const { trainerEpoch, stepsTrained } = await rounds.takeover(pool, { job, takeoverId: `takeover-${turn}` });
      expect(stepsTrained).toBe(isLost ? turn - 1 : turn);
      const trained = groups.map(({ groupId }) => ({ groupId, samples: 1 }));
      const args = { job, trainerEpoch, step: turn, groups: trained, isLast: true, groupIds: [] };
      const { cancelledRoundId, stamp: next } = await rounds.reconcile(pool, args);
      if (cancelledRoundId !== undefined) {
        for (let more = true; more;) ({ more } = await rounds.giveBack(pool, { job, roundId: cancelledRoundId }));
      }
      for await (const _ of rounds.whileMore('fold', pool, round));
      expect(await rounds.jobStatus(pool, { job, stamp: next })).toMatchObject({
        stepsTrained: turn,
        requests: { submitted: 2 * turn, trained: 2 * turn },
      });
      expect((await new PoolAudit(test.redis, test.runner).run(pool)).findings).toEqual([]);
      round = await test.open({ policy, neededGroups: 2, samples: 1, step: turn + 1, trainerEpoch });
    }
    generations.push((await rounds.due(pool)).stamp.split('.')[0]!);
    expect(new Set(generations).size).toBe(3);
  });
});
