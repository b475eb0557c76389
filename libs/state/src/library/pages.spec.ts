import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import fc from 'fast-check';
import { RoundStore } from '../rounds/round.store';
import { openTestStore } from '../routing/routing-store.fixture';

let test: ReturnType<typeof openTestStore>;
let rounds: RoundStore;
beforeEach(() => {
  test = openTestStore();
  rounds = new RoundStore(test.runner);
});
afterEach(() => test.close());

/** Reads all pages of the jobs, and checks the size of each. `between` runs after each page. */
async function readJobs(limit: number, between: () => Promise<unknown> = async () => {}): Promise<Set<string>> {
  const found = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await rounds.listJobs(test.pool, { cursor, limit });
    expect(page.jobs.length).toBeLessThanOrEqual(limit);
    for (const job of page.jobs) found.add(job);
    cursor = page.cursor;
    await between();
  } while (cursor !== undefined);
  return found;
}

it('gives every entry of a list in pages of at most the limit, whatever the encoding of the list', async () => {
  // Redis returns a small set whole, and a large one by buckets that can hold several names.
  const sizes = fc.oneof(fc.integer({ min: 0, max: 140 }), fc.integer({ min: 400, max: 700 }));
  await fc.assert(
    fc.asyncProperty(sizes, fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 128 })), async (size, limit) => {
      await test.redis.del(`${test.root}:jobs`);
      const names = Array.from({ length: size }, (_, n) => `job~${n}/é`);
      if (size > 0) await test.redis.sadd(`${test.root}:jobs`, ...names);
      expect([...(await readJobs(limit))].toSorted()).toEqual(names.toSorted());
    }),
    { numRuns: 8 * inject('runsFactor') },
  );
});

it('misses no entry that stays while a small list becomes a large one', async () => {
  const names = Array.from({ length: 100 }, (_, n) => `stays-${n}`);
  await test.redis.sadd(`${test.root}:jobs`, ...names);
  let added = 0;
  const grow = () => test.redis.sadd(`${test.root}:jobs`, ...Array.from({ length: 40 }, () => `new-${(added += 1)}`));
  const found = await readJobs(16, async () => {
    if (added < 400) await grow();
  });
  expect(names.filter((name) => !found.has(name))).toEqual([]);
});
