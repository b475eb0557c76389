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

/** Simulated engines, and how the samples of a group are placed on them. */
export interface EngineSetup {
  model: EnginePresetName;
  /** They are data-parallel ranks of one engine. */
  lockstep: boolean;
  groupPlacement: GroupPlacement;
}

/** What one run of the reference trainer does; the command line after validation. */
export interface TrainerOptions {
  /** Path of a JSONL file, `-` for standard input, undefined for the example prompts. */
  prompts?: string;
  /** Base URLs of real engines; empty = simulated ones. */
  engineUrls: string[];
  /** Simulated engines. */
  engines: number;
  /** Training steps; `all` = the whole file; undefined = a few, at most what the file gives. */
  steps?: number | 'all';
  /** Groups (prompts) one training step consumes. */
  groups: number;
  /** Samples of one group. */
  samples: number;
  /** Launched groups / needed groups in a short round, at least 1. */
  overProvision: number;
  tailPolicy: TailPolicyName;
  /** Its parameters. */
  tail: TailParameters;
  /** Whether requests move between engines during a step. */
  rebalance: 'off' | 'dry-run' | 'on';
  rebalancePolicy: RebalancePolicy;
  setup: EngineSetup;
  /** Of sampling on real engines (absent: they draw their own random numbers), and of simulated lengths. */
  seed?: number;
  /** How the trainer calls its operations. */
  via: 'nats' | 'gateway';
  /** Stop everything after the report. */
  once: boolean;
  report?: string;
  /** Every event of the pool, one line each, for the laboratory. */
  recordEvents?: string;
  results?: string;
  /** Continue `job` after the steps that `results` has. */
  continue: boolean;
  /** Token budget of one sample; undefined = what the engines are set up for. */
  maxTokens?: number;
  /** Model the engines are asked for; undefined = the first that each lists. */
  model?: string;
  /** Sampling parameters of all requests, the seed included. */
  sampling: SamplingParameters;
  /** Simulated seconds per second; undefined = chosen by the load. */
  speed?: number;
  /** Length preset of the simulator. */
  lengths: string;
  /** Also run the same prompts under `wait`, to compare. */
  baseline: boolean;
  pool?: string;
  job?: string;
  workers: number;
  /** Where the logs go and stay; undefined = a private folder that goes at the end. */
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
  /** Of simulated lengths. */
  seed: 1,
  lengths: 'math-short-16k',
  workers: 2,
} as const;
