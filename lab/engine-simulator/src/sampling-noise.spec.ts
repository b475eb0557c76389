import { createEngineAdapter, engineRequestId, sampleSeed } from '@broomwagon/engines';
import { equalShares, marginOfShares, type WantedTokens } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSimulator } from './simulator';
import { startEngine } from './test-engine';

const SEED = 1;
const TOKENS = 40;
const PAIRS = 128;
/** Bound that random noise exceeds once in a million shares; with fixed seeds, the result is always the same. */
const MARGIN = marginOfShares(PAIRS, 1e-6);

type SeedOf = (wanted: WantedTokens) => number | undefined;
const ownSeed: SeedOf = ({ prompt, sample, made }) =>
  sampleSeed(SEED, { job: 'job', groupId: `g${prompt}`, sampleIndex: sample, madeTokens: made.length });

describe('sampling noise of an engine whose tokens depend on the noise alone', () => {
  let simulator: RunningSimulator & { url: string };
  beforeAll(async () => {
    const lengths = { name: 'long', getLength: () => 3 * TOKENS };
    simulator = await startEngine('vllm', { noise: true, lengths });
  });
  afterAll(() => simulator.close());

  let attempts = 0;
  function generateWith(seedOf: SeedOf) {
    const adapter = createEngineAdapter('vllm', simulator.url);
    return async (wanted: WantedTokens): Promise<number[]> => {
      const { tokenIds } = await adapter.generate({
        engineRequestId: engineRequestId('noise', `${++attempts}`),
        prompt: { promptTokenIds: [wanted.prompt, 7] },
        maxTokens: wanted.made.length + TOKENS,
        sampling: { temperature: 1, seed: seedOf(wanted) },
        made: { tokenIds: [...wanted.made] },
      });
      return tokenIds!;
    };
  }

  it('is independent between prompts, samples and resumed tails, with a seed and without', async () => {
    for (const seedOf of [ownSeed, () => undefined]) {
      const shares = await equalShares(generateWith(seedOf), PAIRS);
      for (const share of Object.values(shares)) expect(share).toBeLessThan(MARGIN);
    }
  });

  it('is the same for the same sample', async () => {
    const generate = generateWith(ownSeed);
    const wanted = { prompt: 3, sample: 2, made: [] };
    const tokens = await generate(wanted);
    expect(await generate(wanted)).toEqual(tokens);
    const tail = { ...wanted, made: tokens };
    expect(await generate(tail)).toEqual(await generate(tail));
  });

  it('is found shared if different prompts have the same seeds, and tails the seed of their sample', async () => {
    const shares = await equalShares(
      generateWith(({ sample }) => SEED + sample),
      PAIRS,
    );
    expect(shares.prompts).toBeGreaterThan(MARGIN);
    expect(shares.tails).toBeGreaterThan(MARGIN);
    expect(shares.samples).toBeLessThan(MARGIN);
  });
});
