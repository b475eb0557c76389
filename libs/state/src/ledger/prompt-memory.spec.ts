import { expectedLongest, rememberLength, type PromptLengths } from '@broomwagon/models';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { promptHash, PromptMemoryStore } from './prompt-memory.store';

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

  it('remembers what the policies compute, to the precision of its 6 bytes', async () => {
    const batch = fc.record({
      lengths: fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 16 }),
      atCap: fc.boolean(),
    });
    let prompts = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 6 }), async (batches) => {
        const hash = promptHash(`prompt ${(prompts += 1)}`);
        let expected: PromptLengths | undefined;
        for (const { lengths, atCap } of batches) {
          await memory.remember(pool, [{ hash, lengths, atCap }]);
          for (const tokens of lengths) expected = rememberLength(expected, tokens, atCap);
        }
        const [known] = await memory.lengths(pool, [hash]);
        expect(known).toMatchObject({ hash, samples: expected!.samples });
        expect(known!.meanLog).toBeCloseTo(expected!.meanLog, 2);
        expect(known!.deviationLog).toBeCloseTo(expected!.deviationLog, 2);
        expect(known!.capShare).toBeCloseTo(expected!.capShare, 1);
        expect(expectedLongest(known!, 8, 50_000)).toBeLessThanOrEqual(50_000);
      }),
      { numRuns: 40 * inject('runsFactor') },
    );
  });

  it('says nothing of prompts it never saw, and keeps a bucket at its bound', async () => {
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
