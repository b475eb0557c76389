import { IsOptional } from 'class-validator';
import { IsId, type JobId, type RoundId } from './ids';
import type { Integer } from './integers';

/** Lengths of samples, tokens. */
export interface LengthSummary {
  /** How many. */
  samples: Integer;
  /** Mean. */
  meanTokens: number;
  /** Median. */
  p50Tokens: number;
  /** 99th percentile. */
  p99Tokens: number;
  /** Share that ended at the token budget. */
  capShare: number;
}
/** Two numbers about many. */
export interface MeanAndMax {
  /** The mean. */
  mean: number;
  /** The largest. */
  max: number;
}
/** Samples of one range of lengths. */
export interface Acceptance {
  /** Shortest length of the range. */
  fromTokens: number;
  /** Not included. */
  toTokens: number;
  /** Their share of what was trained / their share of what was begun: its inverse reweights a trained sample. */
  ratio: number;
}
/** What a ledger says. Shares are 0 to 1. */
export interface LedgerSummary {
  /** Samples that were trained. */
  trained: LengthSummary;
  /**
   * All that were begun, estimated by Kaplan and Meier, since some were cut. A sample that is drawn again counts each
   * time: only its last draw is seen to its end. Those are the hard prompts, so where tokens are thrown away the
   * estimate is some percent high, and the bias some points low: it warns too early, never too late.
   */
  admitted: LengthSummary;
  /** trained mean / admitted mean: 1 = unbiased, below 1 = short ones preferred. */
  lengthBias: number;
  /** Trained tokens that an older weight version made. */
  offPolicyShare: number;
  /** Weight versions between the oldest token of a sample and its training. */
  versionSpan: MeanAndMax;
  /** Tokens that were thrown away. */
  waste: {
    /** How many. */
    tokens: Integer;
    /** Of all tokens made. */
    share: number;
    /** How many, by reason. */
    byReason: Record<string, Integer>;
  };
  /** Standard deviation / mean of the steps' mean lengths. */
  batchVariation: number;
  /** How often trained groups were cut. */
  cutsPerGroup: MeanAndMax;
  /** Chances of samples to be trained, by their length. */
  acceptance: Acceptance[];
  /**
   * What counts as trained because its trainer says so (`job.reconcile`): Redis had lost it, and knows no lengths, so
   * it is in nothing above. With it, `trained.samples` adds up to the trained requests of the job.
   */
  reconciled: {
    /** Groups. */
    groups: Integer;
    /** Their samples. */
    samples: Integer;
  };
}

/** What a trainer can afford; absent = any amount. Shares are 0 to 1. */
export interface LedgerBounds {
  /** |trained mean length / admitted mean length - 1|. */
  lengthBias?: number;
  /** Trained tokens that an older weight version made. */
  offPolicyShare?: number;
  /** Weight versions between the oldest token of a sample and its training. */
  versionSpan?: number;
  /** Tokens thrown away / all tokens made. */
  wasteShare?: number;
  /** Standard deviation / mean of the steps' mean lengths. */
  batchVariation?: number;
  /** How often a trained group was cut. */
  cutsPerGroup?: number;
}
/** A bound that is near or broken. */
export interface LedgerAlarm {
  /** Name of the bound. */
  bound: keyof LedgerBounds;
  /** The value now. */
  value: number;
  /** The bound. */
  limit: number;
  /** `near`: above 80 % of the bound. */
  state: 'near' | 'over';
}

/** `job.ledger`: what the tail policy has cost, over all steps of a job or in one of its last rounds. */
export class JobLedgerRequest {
  @IsId() job!: JobId;
  /** One of the last 16 rounds; absent: all steps of the job. */
  @IsOptional() @IsId() roundId?: RoundId;
}
export interface JobLedgerReply {
  /** What the policy has cost. */
  summary: LedgerSummary;
  /** Bounds of the job's last policy, and 5 % of length bias, that are near or broken. */
  alarms: LedgerAlarm[];
}
