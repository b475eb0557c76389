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

  it('has the mean and deviation of up to 64 lengths, to the precision of its 6 bytes', async () => {
    const lists = fc.array(fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 16 }), {
      minLength: 1,
      maxLength: 4,
    });
    let prompts = 0;
    await fc.assert(
      fc.asyncProperty(lists, fc.infiniteStream(fc.boolean()), async (batches, draws) => {
        const hash = promptHash(`prompt ${(prompts += 1)}`);
        const all: { log: number; atCap: boolean }[] = [];
        for (const lengths of batches) {
          const atCap: boolean = draws.next().value;
          await memory.remember(pool, [{ hash, lengths, atCap }]);
          all.push(...lengths.map((tokens) => ({ log: Math.log(Math.max(1, tokens)), atCap })));
        }
        const mean = all.reduce((sum, { log }) => sum + log, 0) / all.length;
        const variance = all.reduce((sum, { log }) => sum + (log - mean) ** 2, 0) / all.length;
        const [known] = await memory.lengths(pool, [hash]);
        expect(known).toMatchObject({ hash, samples: all.length });
        expect(known!.meanLog).toBeCloseTo(mean, 2);
        expect(known!.deviationLog).toBeCloseTo(Math.sqrt(variance), 2);
        expect(known!.capShare).toBeCloseTo(all.filter(({ atCap }) => atCap).length / all.length, 1);
      }),
      { numRuns: 40 * inject('runsFactor') },
    );
  });

  it('follows a prompt that changes, and forgets what was long ago', async () => {
    const hash = promptHash('changes');
    for (const tokens of [50, 50, ...Array.from({ length: 40 }, () => 8_000)]) {
      await memory.remember(pool, [{ hash, lengths: Array.from({ length: 16 }, () => tokens), atCap: false }]);
    }
    const [known] = await memory.lengths(pool, [hash]);
    expect(Math.exp(known!.meanLog)).toBeGreaterThan(7_900);
    expect(known!.samples).toBe(64);
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
