import { ENGINE_PRESETS, LENGTH_PRESETS, type EngineParameters, type LengthDistribution } from '@broomwagon/models';
import type { AgenticSetup } from './agentic/agentic-run';
import type { KvTransfer } from './rollout/placement';

/**
 * Every number the laboratory assumes, in one place. Engines and lengths are the presets of libs/policies, fitted once
 * to the published baselines; none is tuned for a row of a table. Who is to be believed is the ratio of two runs, never
 * a run alone.
 */
export interface Setup {
  /** Printed beside every published number. */
  hardware: string;
  model: string;
  /** Longest response, tokens. */
  capTokens: number;
  servers: number;
  engine: EngineParameters;
  lockstep?: boolean;
  lengths: LengthDistribution;
  promptTokens: number;
  groupsPerStep: number;
  samples: number;
  transfer?: KvTransfer;
}

/** Between two rounds: cut, training call, new weights, seconds. Part of every step, baselines included. */
export const STEP_OVERHEAD_SECONDS = 2;
/**
 * Share of the rollout in a synchronous training step (RollPacker: 66 to 72 %): turns a rollout's speed into a step's.
 */
export const ROLLOUT_SHARE = 0.7;
/** Text prompts, and prompts with images, tokens. No source has them; they matter little beside the responses. */
const TEXT_PROMPT = 256;
const IMAGE_PROMPT = 1_024;
/** Effective bandwidth of a KV transfer between servers. */
const KV_BYTES_PER_SECOND = 10e9;
const KIB = 1_024;

/** RollPacker, figure 11: 128 prompts of 8 samples. */
const rollpacker = { groupsPerStep: 128, samples: 8, promptTokens: TEXT_PROMPT };
export const SETUPS = {
  rollpacker8k: {
    ...rollpacker,
    hardware: '16 H800, TP1',
    model: 'Qwen2.5-7B',
    capTokens: 8_192,
    servers: 16,
    engine: ENGINE_PRESETS['7b-8k'],
    lengths: LENGTH_PRESETS['math-short-8k'],
  },
  rollpacker16k: {
    ...rollpacker,
    hardware: '32 H800, TP2',
    model: 'Qwen2.5-14B',
    capTokens: 16_384,
    servers: 16,
    engine: ENGINE_PRESETS['14b-16k'],
    lengths: LENGTH_PRESETS['math-short-16k'],
  },
  rollpacker32k: {
    ...rollpacker,
    hardware: '64 H800, TP2',
    model: 'Qwen2.5-32B',
    capTokens: 32_768,
    servers: 32,
    engine: ENGINE_PRESETS['32b-32k'],
    lengths: LENGTH_PRESETS['math-short-32k'],
  },
  /** Long thinking on few GPUs. The KV cache is that of the 7B engine by the bytes per token: 56 to 144 KiB. */
  rollpacker8b: {
    ...rollpacker,
    hardware: '8 H800, TP1',
    model: 'Qwen3-8B',
    capTokens: 32_768,
    servers: 8,
    engine: { ...ENGINE_PRESETS['7b-8k'], kvCapacityTokens: Math.round((700_000 * 56) / 144) },
    lengths: LENGTH_PRESETS['think-32k'],
  },
  /** 32B engines on long thinking: where KV is short. */
  thinking32k: {
    ...rollpacker,
    hardware: '64 GPUs, TP2',
    model: '32B',
    capTokens: 32_768,
    servers: 32,
    engine: ENGINE_PRESETS['32b-32k'],
    lengths: LENGTH_PRESETS['think-32k'],
  },
  seer: {
    hardware: '128 H800, TP8',
    model: 'Qwen2-VL-72B',
    capTokens: 40_960,
    servers: 16,
    engine: ENGINE_PRESETS['72b'],
    lengths: LENGTH_PRESETS['vl-72b'],
    promptTokens: IMAGE_PROMPT,
    groupsPerStep: 600,
    samples: 16,
    transfer: { bytesPerToken: 320 * KIB, bytesPerSecond: KV_BYTES_PER_SECOND },
  },
  ascend: {
    hardware: '64 Ascend A3, TP4 DP32',
    model: 'Qwen3-235B-A22B',
    capTokens: 32_768,
    servers: 32,
    lockstep: true,
    engine: ENGINE_PRESETS['235b-moe'],
    lengths: LENGTH_PRESETS['moe-32k'],
    promptTokens: TEXT_PROMPT,
    groupsPerStep: 512,
    samples: 16,
    transfer: { bytesPerToken: 188 * KIB, bytesPerSecond: KV_BYTES_PER_SECOND },
  },
  april: {
    hardware: '8 GPUs',
    model: 'Qwen3-4B',
    capTokens: 8_192,
    servers: 8,
    engine: ENGINE_PRESETS['4b-small-batch'],
    lengths: LENGTH_PRESETS['tight-8k'],
    promptTokens: TEXT_PROMPT,
    groupsPerStep: 32,
    samples: 8,
  },
  copris: {
    hardware: '16 GPUs',
    model: '1.5B',
    capTokens: 15_360,
    servers: 16,
    engine: ENGINE_PRESETS['2b'],
    lengths: { ...LENGTH_PRESETS['small-16k'], capTokens: 15_360 },
    promptTokens: TEXT_PROMPT,
    groupsPerStep: 64,
    samples: 8,
  },
  tailsieve: {
    hardware: '8 H100',
    model: 'Qwen3.5-2B',
    capTokens: 16_384,
    servers: 4,
    engine: ENGINE_PRESETS['2b'],
    lengths: LENGTH_PRESETS['small-16k'],
    promptTokens: TEXT_PROMPT,
    groupsPerStep: 64,
    samples: 8,
  },
} as const satisfies Record<string, Setup>;

export type SetupName = keyof typeof SETUPS;

/** The same total variance of ln(length), another share of it between prompts. */
export function withPromptShare(lengths: LengthDistribution, share: number): LengthDistribution {
  const variance = lengths.promptSigma ** 2 + lengths.sampleSigma ** 2;
  return { ...lengths, promptSigma: Math.sqrt(share * variance), sampleSigma: Math.sqrt((1 - share) * variance) };
}

/** Standard deviation of a logarithm from two quantiles: the median and one at `z` standard deviations. */
const sigmaOf = (median: number, quantile: number, z: number): number => Math.log(quantile / median) / z;
const Z90 = 1.2816;
const Z99 = 2.3263;

/** The agentic overlay: turns and tool times by published quantiles; everything else is assumed, and not calibrated. */
export const AGENTIC: AgenticSetup = {
  servers: 16,
  engine: ENGINE_PRESETS['14b-16k'],
  trajectories: 768,
  samplesPerGroup: 8,
  promptTokens: 4_000,
  turns: { median: 29, sigma: sigmaOf(29, 56, Z90), cap: 99 },
  madeTokens: { median: 300, sigma: 0.6 },
  toolTokens: { median: 300, sigma: 1 },
  toolSeconds: { median: 2, sigma: sigmaOf(2, 60, Z99), timeoutShare: 0.01, timeoutSeconds: 300 },
};
