/** Speed and size of one simulated engine. Times in seconds, sizes in tokens. */
export interface EngineParameters {
  /** t0: time of a decode step with an empty batch, seconds. */
  stepBaseSeconds: number;
  /** cb: added per sequence of the batch, seconds. */
  stepPerSequenceSeconds: number;
  /** ck: added per token of KV cache in use, seconds. */
  stepPerKvTokenSeconds: number;
  /** KV cache, tokens. */
  kvCapacityTokens: number;
  /** Most sequences running at once. */
  slots: number;
  /** Prompt tokens computed per second; while it prefills, the engine does not decode (the conservative model). */
  prefillTokensPerSecond: number;
  /** Batch sizes of captured graphs, ascending: a step costs as much as the smallest one that fits. Absent: eager. */
  graphTiers?: readonly number[];
}

/** Parameter sets fitted to published measurements (7B to 32B dense models, one mixture of experts). */
export const ENGINE_PRESETS = {
  '7b-8k': preset(8.5, 0.04, 20, 700_000, 1_024, 20_000),
  '14b-16k': preset(14.5, 0.06, 22, 600_000, 1_024, 20_000),
  '32b-32k': preset(18.5, 0.08, 26, 350_000, 1_024, 20_000),
  '72b': preset(20, 0.08, 16, 1_300_000, 512, 8_000),
  '235b-moe': { ...preset(52, 0.9, 70, 2_400_000, 64, 8_000), graphTiers: [4, 8, 16, 32, 64] },
  '4b-small-batch': preset(6.5, 0.12, 40, 700_000, 64, 20_000),
  '2b': preset(5, 0.16, 10, 3_000_000, 1_024, 20_000),
} as const satisfies Record<string, EngineParameters>;

function preset(
  baseMs: number,
  perSequenceMs: number,
  perKvTokenNs: number,
  kvCapacityTokens: number,
  slots: number,
  prefillTokensPerSecond: number,
): EngineParameters {
  return {
    stepBaseSeconds: baseMs / 1e3,
    stepPerSequenceSeconds: perSequenceMs / 1e3,
    stepPerKvTokenSeconds: perKvTokenNs / 1e9,
    kvCapacityTokens,
    slots,
    prefillTokensPerSecond,
  };
}
