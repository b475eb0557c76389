import type {
  GroupPlacement,
  RebalancePolicy,
  SamplingParameters,
  TailPolicy,
  TailPolicyName,
} from '@broomwagon/contracts';
import type { EnginePresetName } from '@broomwagon/models';

/** Parameters of the tail policy besides its name and over-provision. */
export type TailParameters = Omit<TailPolicy, 'name' | 'overProvision' | 'shortfall' | 'maxFailures' | 'domainQuotas'>;

/** Setup of simulated engines, and the placement of a group's samples on them. */
export interface EngineSetup {
  model: EnginePresetName;
  /** Whether the engines are data-parallel ranks of one engine. */
  lockstep: boolean;
  groupPlacement: GroupPlacement;
}

/** Options of one run of the reference trainer: the command line after validation. */
export interface TrainerOptions {
  /** Path of a JSONL file, `-` for standard input, undefined for the example prompts. */
  prompts?: string;
  /** Base URLs of real engines; empty = simulated ones. */
  engineUrls: string[];
  /** Number of simulated engines. */
  engines: number;
  /** Training steps; `all` = the whole file; undefined = a few, or fewer if the file has fewer prompts. */
  steps?: number | 'all';
  /** Number of groups (prompts) of one training step. */
  groups: number;
  /** Number of samples of one group. */
  samples: number;
  /** Launched groups / needed groups in a short round, at least 1. */
  overProvision: number;
  tailPolicy: TailPolicyName;
  /** Parameters of the tail policy. */
  tail: TailParameters;
  /** Whether requests move between engines during a step. */
  rebalance: 'off' | 'dry-run' | 'on';
  rebalancePolicy: RebalancePolicy;
  setup: EngineSetup;
  /** Seed of sampling on real engines (absent: they draw their own random numbers), and of simulated lengths. */
  seed?: number;
  /** Way in which the trainer calls its operations. */
  via: 'nats' | 'gateway';
  /** Whether to stop everything after the report. */
  once: boolean;
  report?: string;
  /** File for every event of the pool, one line each, for the laboratory. */
  recordEvents?: string;
  results?: string;
  /** Whether to continue `job` after the steps that `results` has. */
  continue: boolean;
  /** Token budget of one sample; undefined = a default for real engines, the preset's cap for simulated ones. */
  maxTokens?: number;
  /** Model to request from the engines; undefined = the first model that each engine lists. */
  model?: string;
  /** Sampling parameters of all requests, the seed included. */
  sampling: SamplingParameters;
  /** Simulated seconds per second; undefined = chosen for the load. */
  speed?: number;
  /** Length preset of the simulator, or of all runs with `equalLengths`. */
  lengths: string;
  /** Whether all runs on real engines have the lengths of `lengths`, with examples/equal-lengths in each vLLM. */
  equalLengths: boolean;
  /** Whether to run the same prompts also under the policies of `compare`; with a rebalance, once without it. */
  baseline: boolean;
  compare: TailPolicyName[];
  pool?: string;
  job?: string;
  workers: number;
  /** Folder in which the logs stay; undefined = a private folder that is deleted at the end. */
  keepLogs?: string;
}

/** Defaults: the whole run takes well under three minutes on two cores. */
export const DEFAULTS = {
  engines: 8,
  steps: 10,
  groups: 32,
  samples: 4,
  overProvision: 1.375,
  tailPolicy: 'resume' as TailPolicyName,
  /** Seed of simulated lengths. */
  seed: 1,
  lengths: 'math-short-16k',
  workers: 2,
} as const;
