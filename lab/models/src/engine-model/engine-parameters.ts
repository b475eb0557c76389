/** Speed and size of one simulated engine. Times in seconds, sizes in tokens. */
export interface EngineParameters {
  /** t0: time of a decode step with an empty batch, seconds. */
  stepBaseSeconds: number;
  /** cb: time added per sequence of the batch, seconds. */
  stepPerSequenceSeconds: number;
  /** ck: time added per token of KV cache in use, seconds. */
  stepPerKvTokenSeconds: number;
  /** Size of the KV cache, tokens. */
  kvCapacityTokens: number;
  /** Most sequences that run at once. */
  slots: number;
  /** Prompt tokens computed per second, without the attention to tokens before them if that is given below. */
  prefillTokensPerSecond: number;
  /** Time by which each token before it delays a prompt token, seconds; only with `stepTokens`. */
  prefillPerContextTokenSeconds?: number;
  /**
   * Most tokens that a step computes (`max_num_batched_tokens`), more than `slots`: contexts are computed in chunks
   * beside the decode. Absent: the engine does not decode while it prefills (a conservative assumption).
   */
  stepTokens?: number;
  /** Batch sizes of captured graphs, ascending: a step costs as much as the smallest fitting graph. Absent: eager. */
  graphTiers?: readonly number[];
  /**
   * Most tokens that a step of an engine without a prefix cache computes (`max_num_batched_tokens`), more than `slots`.
   * Absent: the engine has a prefix cache, so a preempted chunk is not lost, and a context is admitted once all of it
   * fits.
   */
  chunkTokensWithoutCache?: number;
}

/** One engine: a model in bf16 on some GPUs. */
interface Card {
  parameters: number;
  /** Bytes of keys and values: 2 x layers x KV heads x head size x 2 bytes, from the configuration of the model. */
  kvBytesPerToken: number;
  gpus: number;
  /** t0, milliseconds: the only fitted number, from the published seconds of a rollout without a policy. */
  stepBaseMs: number;
  gpu?: typeof H800;
  /** gpu_memory_utilization. */
  memoryShare?: number;
  /** Parameters that a token uses, of a mixture of experts. */
  activeParameters?: number;
  /** For an engine that computes contexts in chunks: tokens of a step, and layers x heads x head size. */
  chunks?: { stepTokens: number; attentionWidth: number };
}

const KIB = 1_024;
/** H100 and H800, and the MI300X of APRIL, by data sheet: bytes, bytes per second, bf16 operations per second. */
const H800 = { memory: 80e9, bandwidth: 3.35e12, operations: 989e12 };
const MI300X = { memory: 192e9, bandwidth: 5.3e12, operations: 1_307e12 };
/** max_num_seqs: more sequences than any of the runs has. RollPacker, figure 11: 2,048. */
const SLOTS = 2_048;
/** Share of the data-sheet rates that is reached when reading KV, computing a decode step and a prefill. Assumed. */
const EFFICIENCY = { bandwidth: 0.8, decode: 0.5, prefill: 0.4 };
/** gpu_memory_utilization (RollPacker, figure 11), and memory besides weights and KV, bytes per GPU (assumed). */
const MEMORY = { share: 0.85, activations: 4e9 };
/**
 * CPU time of the engine process per sequence and step: scheduling, sampling, token output. TailSieve measured
 * tau(1) = 5.2 ms and tau(128) = 25.5 ms for a 2B model, whose GPU time per sequence is negligible.
 */
const HOST_SECONDS_PER_SEQUENCE = 0.15e-3;

function computeEngineParameters({
  parameters,
  kvBytesPerToken,
  gpus,
  stepBaseMs,
  gpu = H800,
  memoryShare = MEMORY.share,
  activeParameters = parameters,
  chunks,
}: Card): EngineParameters {
  const kvBytes = gpus * (memoryShare * gpu.memory - MEMORY.activations) - 2 * parameters;
  const operations = gpus * gpu.operations;
  return {
    stepBaseSeconds: stepBaseMs / 1e3,
    stepPerSequenceSeconds: HOST_SECONDS_PER_SEQUENCE + (2 * activeParameters) / (EFFICIENCY.decode * operations),
    stepPerKvTokenSeconds: kvBytesPerToken / (EFFICIENCY.bandwidth * gpus * gpu.bandwidth),
    kvCapacityTokens: Math.floor(kvBytes / kvBytesPerToken),
    slots: SLOTS,
    prefillTokensPerSecond: (EFFICIENCY.prefill * operations) / (2 * activeParameters),
    ...(chunks && {
      stepTokens: chunks.stepTokens,
      // Two products of matrices, each with two operations for a number.
      prefillPerContextTokenSeconds: (4 * chunks.attentionWidth) / (EFFICIENCY.prefill * operations),
    }),
  };
}

/** Engines of the published measurements. */
export const ENGINE_PRESETS = {
  /** Qwen2.5-7B on one GPU. */
  '7b-8k': computeEngineParameters({ parameters: 7.6e9, kvBytesPerToken: 56 * KIB, gpus: 1, stepBaseMs: 6.5 }),
  /** Qwen3-8B on one GPU: KV memory is scarce. */
  '8b-32k': computeEngineParameters({ parameters: 8.2e9, kvBytesPerToken: 144 * KIB, gpus: 1, stepBaseMs: 7.7 }),
  /** Qwen2.5-14B on two GPUs. */
  '14b-16k': computeEngineParameters({ parameters: 14.8e9, kvBytesPerToken: 192 * KIB, gpus: 2, stepBaseMs: 13.7 }),
  /** Qwen2.5-32B on two GPUs. */
  '32b-32k': computeEngineParameters({ parameters: 32.8e9, kvBytesPerToken: 256 * KIB, gpus: 2, stepBaseMs: 16.9 }),
  /** Qwen2.5-VL-32B on four GPUs. */
  'vl-32b': computeEngineParameters({ parameters: 33.5e9, kvBytesPerToken: 256 * KIB, gpus: 4, stepBaseMs: 14 }),
  /** Qwen2-VL-72B on eight GPUs. */
  '72b': computeEngineParameters({
    parameters: 72.7e9,
    kvBytesPerToken: 320 * KIB,
    gpus: 8,
    stepBaseMs: 17,
    memoryShare: 0.765,
  }),
  /** Qwen3-235B-A22B on four Ascend A3, fitted to published times per token: 125 to 200 ms, 60 ms in small graphs. */
  '235b-moe': {
    stepBaseSeconds: 0.052,
    stepPerSequenceSeconds: 0.9e-3,
    stepPerKvTokenSeconds: 70e-9,
    kvCapacityTokens: 2_400_000,
    slots: 64,
    prefillTokensPerSecond: 8_000,
    graphTiers: [4, 8, 16, 32, 64],
  },
  /** Qwen3-4B on two MI300X. */
  '4b-small-batch': computeEngineParameters({
    parameters: 4e9,
    kvBytesPerToken: 144 * KIB,
    gpus: 2,
    stepBaseMs: 6.5,
    gpu: MI300X,
  }),
  /** Qwen3-30B-A3B on two H100, for agents: 760,000 tokens of KV. t0 is the time to read the weights; assumed. */
  '30b-a3b-agents': computeEngineParameters({
    parameters: 30.5e9,
    activeParameters: 3.3e9,
    kvBytesPerToken: 96 * KIB,
    gpus: 2,
    stepBaseMs: 11.5,
    memoryShare: 0.9,
    chunks: { stepTokens: 8_192, attentionWidth: 48 * 32 * 128 },
  }),
  /** A 2B model on one GPU; TailSieve measured tau(1) = 5.2 ms. */
  '2b': computeEngineParameters({ parameters: 2e9, kvBytesPerToken: 28 * KIB, gpus: 1, stepBaseMs: 5 }),
} as const satisfies Record<string, EngineParameters>;

export type EnginePresetName = keyof typeof ENGINE_PRESETS;

/** Seconds of one decode step: tau = t0 + cb * X + ck * K, where X is the batch or the graph tier that holds it. */
export function stepSeconds(parameters: EngineParameters, batch: number, kvTokens: number): number {
  const tier = parameters.graphTiers?.find((size) => size >= batch) ?? batch;
  return (
    parameters.stepBaseSeconds + parameters.stepPerSequenceSeconds * tier + parameters.stepPerKvTokenSeconds * kvTokens
  );
}

/** Seconds of decode steps of a fixed batch, in continuous time: a step takes `first`, each next one `growth` more. */
export function secondsOfSteps(steps: number, first: number, growth: number): number {
  return steps * first + (growth * steps * steps) / 2;
}

/** Inverse of {@link secondsOfSteps}, in the form that stays exact for growth = 0. */
export function stepsInSeconds(seconds: number, first: number, growth: number): number {
  return (2 * seconds) / (first + Math.sqrt(first * first + 2 * growth * seconds));
}
