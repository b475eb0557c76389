import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { promptHash, PromptMemoryStore } from './prompt-memory.store';

/**
 * Weights of `count` lengths: up to 64 they are equal. Each further length has the weight 1/64, by which the earlier
 * weights shrink.
 */
function computeWeights(count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const own = 1 / Math.min(index + 1, 64);
    return Array.from({ length: count - index - 1 }, (_, later) => 1 - 1 / Math.min(index + later + 2, 64)).reduce(
      (weight, kept) => weight * kept,
      own,
    );
  });
}
const weighted = (values: readonly number[], weights: readonly number[]): number =>
  values.reduce((sum, value, index) => sum + value * weights[index]!, 0);

describe('the prompt memory', () => {
  const { pool, keyPrefix } = testPool();
  let redis: ReturnType<typeof connectRedis>;
  let memory: PromptMemoryStore;

  beforeAll(() => {
    redis = connectRedis({ url: testRedisUrl() });
    memory = new PromptMemoryStore(new FunctionRunner(redis, keyPrefix));
  });
  afterAll(async () => {
    await flushPrefix(testRedisUrl(), keyPrefix);
    await redis.quit();
  });

  it('adds the lengths of a call once, however often the call is repeated', async () => {
    const prompts = Array.from({ length: 40 }, (_, index) => ({
      hash: promptHash(`repeated ${index}`),
      lengths: [10, 20],
      atCap: false,
    }));
    const results = [];
    for (const id of ['one', 'one', 'two']) results.push(await memory.remember(pool, prompts, id));
    expect(results).toEqual([40, 40, 40]);
    const hashes = prompts.map(({ hash }) => hash);
    expect((await memory.lengths(pool, hashes)).map(({ samples }) => samples)).toEqual(hashes.map(() => 4));
  });

  it('has the mean, deviation and share at the cap, to the precision of its 6 bytes', async () => {
    const batch = fc.record({
      lengths: fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 16 }),
      atCap: fc.boolean(),
    });
    let prompts = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 6 }), async (batches) => {
        const hash = promptHash(`prompt ${(prompts += 1)}`);
        for (const { lengths, atCap } of batches) await memory.remember(pool, [{ hash, lengths, atCap }]);
        const logs = batches.flatMap(({ lengths }) => lengths.map((tokens) => Math.log(Math.max(1, tokens))));
        const capped = batches.flatMap(({ lengths, atCap }) => lengths.map(() => Number(atCap)));
        const weights = computeWeights(logs.length);
        const mean = weighted(logs, weights);
        const variance = weighted(
          logs.map((log) => (log - mean) ** 2),
          weights,
        );
        const [known] = await memory.lengths(pool, [hash]);
        expect(known).toMatchObject({ hash, samples: Math.min(logs.length, 64) });
        expect(known!.meanLog).toBeCloseTo(mean, 2);
        expect(known!.deviationLog).toBeCloseTo(Math.sqrt(variance), 2);
        expect(known!.capShare).toBeCloseTo(weighted(capped, weights), 1);
      }),
      { numRuns: 40 * inject('runsFactor') },
    );
  });

  it('follows a prompt that changes, and forgets old lengths', async () => {
    const hash = promptHash('changes');
    for (const tokens of [50, 50, ...Array.from({ length: 40 }, () => 8_000)]) {
      await memory.remember(pool, [{ hash, lengths: Array.from({ length: 16 }, () => tokens), atCap: false }]);
    }
    const [known] = await memory.lengths(pool, [hash]);
    expect(Math.exp(known!.meanLog)).toBeGreaterThan(7_900);
    expect(known!.samples).toBe(64);
  });

  it('adds the lengths of a call once, however often it is repeated with its id', async () => {
    const hash = promptHash('repeated');
    const page = [{ hash, lengths: [10, 20], atCap: false }];
    for (const _ of [1, 2]) expect(await memory.remember(pool, page, 'call')).toBe(1);
    expect((await memory.lengths(pool, [hash]))[0]!.samples).toBe(2);
    await memory.remember(pool, page, 'other');
    expect((await memory.lengths(pool, [hash]))[0]!.samples).toBe(4);
  });

  it('returns nothing for unknown prompts, and keeps a bucket at its bound', async () => {
    expect(await memory.lengths(pool, [promptHash('never')])).toEqual([]);
    const hashes = Array.from({ length: 130 }, (_, index) => `beef${index.toString(16).padStart(12, '0')}`);
    for (let start = 0; start < hashes.length; start += 65) {
      const page = hashes.slice(start, start + 65).map((hash) => ({ hash, lengths: [100], atCap: false }));
      expect(await memory.remember(pool, page)).toBe(65);
    }
    const known = [
      ...(await memory.lengths(pool, hashes.slice(0, 65))),
      ...(await memory.lengths(pool, hashes.slice(65))),
    ];
    expect(known).toHaveLength(120);
    expect(known.map(({ hash }) => hash)).toContain(hashes.at(-1));
    expect(await redis.object('ENCODING', `${keyPrefix}:{${pool}}:prompt-lengths:beef`)).toBe('listpack');
    expect(await redis.pttl(`${keyPrefix}:{${pool}}:prompt-lengths:beef`)).toBeGreaterThan(0);
  });
});
