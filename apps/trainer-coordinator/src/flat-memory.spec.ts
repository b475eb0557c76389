import type { Epoch, TailPolicy } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { keysBelow } from '../../../libs/state/src/audit/key-scan';
import { CoordinatorFixture, groups } from './coordinator.fixture';

const ROUNDS = 200;
/** The rounds run one after another, so that the time of the test grows with their number. */
const timeout = ROUNDS * 2_000;

it('Redis holds as many keys and as much memory after 200 rounds as after 20', { timeout }, async () => {
  const fixture = await CoordinatorFixture.start(1);
  const worker = await fixture.worker('steady');
  const { client, pool, redis } = fixture;
  const policy: TailPolicy = { name: 'resume', overProvision: 1 };
  let trainerEpoch: Epoch | undefined;

  /** Keys without a time to live, by kind, and their total memory, when no work is left. */
  async function usage(): Promise<{ keys: Map<string, number>; bytes: number }> {
    await fixture.swept();
    await expect.poll(() => redis.xlen(`${fixture.rootKey}:events`)).toBe(0);
    const prefix = fixture.rootKey.split(':')[0];
    // Payloads are removed after the fold.
    await expect.poll(() => redis.keys(`${prefix}:payload:*:item:*`)).toEqual([]);
    await fixture.removed();
    const keys = new Map<string, number>();
    let bytes = 0;
    for await (const page of keysBelow(redis, `${prefix}:`)) {
      for (const key of page) {
        if ((await redis.pttl(key)) !== -1) continue;
        // The names of keys of rounds end with a number.
        const kind = key.replace(/\d+$/, '#');
        keys.set(kind, (keys.get(kind) ?? 0) + 1);
        // The stream keeps its nodes for a while after its entries are gone.
        if (!key.endsWith(':events')) bytes += (await redis.memory('USAGE', key)) ?? 0;
      }
    }
    return { keys, bytes };
  }
  async function run(from: number, to: number): Promise<void> {
    for (let step = from; step < to; step++) {
      const wanted = { groupsPerStep: 2, remainingGroups: 1_000, policy, trainerEpoch };
      const opened = await fixture.open('job', wanted);
      ({ trainerEpoch } = opened);
      const round = { job: 'job', roundId: opened.roundId, trainerEpoch };
      await client.call(pool, 'round.submit', { ...round, groups: groups(2, 2 * step) });
      await worker.finishAll();
      await fixture.close(round);
    }
  }
  await run(0, 20);
  const early = await usage();
  await run(20, ROUNDS);
  let late = early;
  const added = async () => {
    late = await usage();
    return [...late.keys].filter(([kind, count]) => count > (early.keys.get(kind) ?? 0));
  };
  // A key that is being removed at that moment counts.
  await expect.poll(added).toEqual([]);
  // Numbers of three digits take a few bytes more than numbers of two; a field kept of each round would take far more.
  expect(late.bytes).toBeLessThan(early.bytes * 1.05);
  expect((await client.call(pool, 'job.status', { job: 'job' })).trainedGroups).toBe(2 * ROUNDS);
  await fixture.stop();
});
