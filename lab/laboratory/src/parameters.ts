import { ENGINE_PRESETS, LENGTH_PRESETS, type EngineParameters, type LengthDistribution } from '@broomwagon/models';
import type { AgenticSetup } from './agentic/agentic-run';
import type { KvTransfer } from './rollout/placement';

/**
 * Hardware, model and workload of a run; this file has all assumed numbers in one place. Engines and lengths are the
 * presets of lab/models: from data sheets, configurations and published quantiles, and otherwise fitted once to
 * published baselines. {@link FITTED} lists the fitted parameters; none is tuned for a row of a table. Only a ratio of
 * two runs is evidence, never a run alone.
 */
export interface Setup {
  /** Name of the hardware, printed beside every published number. */
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

/** Seconds between two rounds: cut, training call, new weights. Part of every step, also of baselines. */
export const STEP_OVERHEAD_SECONDS = 2;
/**
 * Share of the rollout in a synchronous training step at a cap of about 16k (RollPacker: 66 to 72 %). It gives the
 * training time per token, and so the speed of a step from the speed of its rollout.
 */
export const ROLLOUT_SHARE = 0.7;
/** Tokens of text prompts and of prompts with images. No source has them; they matter little beside the responses. */
const TEXT_PROMPT = 256;
const IMAGE_PROMPT = 1_024;
/** Effective bandwidth of a KV transfer between servers. */
const KV_BYTES_PER_SECOND = 10e9;
const KIB = 1_024;

/** RollPacker: 128 prompts of 8 samples, with the lengths of its figure 2a. */
const rollpacker = { groupsPerStep: 128, samples: 8, promptTokens: TEXT_PROMPT };
export const SETUPS = {
  rollpacker8k: {
    ...rollpacker,
    hardware: '16 H800, TP1',
    model: 'Qwen2.5-7B',
    capTokens: 8_192,
    servers: 16,
    engine: ENGINE_PRESETS['7b-8k'],
    lengths: LENGTH_PRESETS['deepmath-8k'],
  },
  rollpacker16k: {
    ...rollpacker,
    hardware: '32 H800, TP2',
    model: 'Qwen2.5-14B',
    capTokens: 16_384,
    servers: 16,
    engine: ENGINE_PRESETS['14b-16k'],
    lengths: LENGTH_PRESETS['deepmath-16k'],
  },
  rollpacker32k: {
    ...rollpacker,
    hardware: '64 H800, TP2',
    model: 'Qwen2.5-32B',
    capTokens: 32_768,
    servers: 32,
    engine: ENGINE_PRESETS['32b-32k'],
    lengths: LENGTH_PRESETS['deepmath-32k'],
  },
  /** Long thinking on few GPUs. */
  rollpacker8b: {
    ...rollpacker,
    hardware: '8 H800, TP1',
    model: 'Qwen3-8B',
    capTokens: 32_768,
    servers: 8,
    engine: ENGINE_PRESETS['8b-32k'],
    lengths: LENGTH_PRESETS['think-32k'],
  },
  /** Long thinking on 32B engines: KV memory is scarce. */
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
    hardware: '8 MI300X, TP2',
    model: 'Qwen3-4B',
    capTokens: 8_192,
    servers: 4,
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
    lengths: { ...LENGTH_PRESETS['distill-16k'], capTokens: 15_360 },
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

/**
 * Runs engines as RollPacker ran vLLM 0.8.4: without a prefix cache (`vllm_strategy.py` of its artifact), and with the
 * token budget of the class `LLM` on GPUs that are not named H100 or H200 (vllm#12369; vllm#17073, which decides by
 * memory, is later than 0.8.4).
 */
const withoutPrefixCache = (setup: Setup): Setup => ({
  ...setup,
  engine: { ...setup.engine, chunkTokensWithoutCache: 8_192 },
});

/** Setups of RollPacker's figure 11, by cap. */
export const FIGURE_11 = {
  '8k': withoutPrefixCache(SETUPS.rollpacker8k),
  '16k': withoutPrefixCache(SETUPS.rollpacker16k),
  '32k': withoutPrefixCache(SETUPS.rollpacker32k),
} as const satisfies Record<string, Setup>;

/** Setup of RollPacker's parallelism planner, with scarce KV memory. */
export const PREEMPTIONS = withoutPrefixCache(SETUPS.rollpacker8b);

export type RollpackerCap = keyof typeof FIGURE_11;

/** Standard deviation of a logarithm from two quantiles: the median, and another at `z` standard deviations. */
const computeSigma = (median: number, quantile: number, z: number): number => Math.log(quantile / median) / z;
const Z90 = 1.2816;
const Z99 = 2.3263;

/**
 * The agentic overlay: turns and tool times by published quantiles (NeMo-Gym). As in asynchronous training, the next
 * trajectory starts when one ends (SkyRL #1791). The concurrency and the similarity of turns within a group are fitted
 * to the baseline of SkyRL: groups take 1,448 s, and 3,013 s at p90, more unequal than with any share. All other
 * numbers are assumed.
 */
export const AGENTIC: AgenticSetup = {
  servers: 16,
  engine: ENGINE_PRESETS['14b-16k'],
  trajectories: 1_248,
  concurrency: 416,
  samplesPerGroup: 8,
  promptTokens: 4_000,
  turns: { median: 29, sigma: computeSigma(29, 56, Z90), cap: 99 },
  turnsPromptShare: 1,
  madeTokens: { median: 300, sigma: 0.6, cap: 4_096 },
  toolTokens: { median: 300, sigma: 1 },
  toolSeconds: { median: 2, sigma: computeSigma(2, 60, Z99), timeoutShare: 0.01, timeoutSeconds: 300 },
};

/**
 * An agent that works by screenshots: verl #5399, OSWorld, Qwen2.5-VL-32B on 3 x 8 H100, 24 tasks of 16 trajectories,
 * at most 50 turns of 512 tokens and prompts of 24,488. A screenshot of 1,920 x 1,080 is 2,700 tokens of Qwen2.5-VL; a
 * full context starts again from the first one. Tokens per turn, seconds per tool call and the longest context are
 * fitted to the baseline: 6.36 s per turn, 899 s for the slowest trajectory. Four GPUs per engine are assumed.
 */
export const GUI_AGENT: AgenticSetup = {
  servers: 6,
  engine: ENGINE_PRESETS['vl-32b'],
  trajectories: 24 * 16,
  samplesPerGroup: 16,
  promptTokens: 3_500,
  contextCapTokens: 22_000,
  turns: { median: 25, sigma: 0.6, cap: 50 },
  madeTokens: { median: 60, sigma: 0.5, cap: 512 },
  toolTokens: { median: 2_700, sigma: 0 },
  toolSeconds: { median: 9, sigma: 0.5, timeoutShare: 0, timeoutSeconds: 300 },
};
/** Number of verl's agent workers; the default of verl. */
export const AGENT_WORKERS = 8;
