import { IsOptional } from 'class-validator';
import { IsId, type JobId, type RoundId } from './ids';

/** Lengths of samples, tokens. */
export interface LengthSummary {
  samples: number;
  meanTokens: number;
  p50Tokens: number;
  p99Tokens: number;
  /** Share that ended at the token budget. */
  capShare: number;
}
/** Samples of one range of lengths. */
export interface Acceptance {
  fromTokens: number;
  /** Not included. */
  toTokens: number;
  /** Their share of what was trained / their share of what was begun: its inverse reweights a trained sample. */
  ratio: number;
}
/** What a ledger says. Shares are 0 to 1. */
export interface LedgerSummary {
  trained: LengthSummary;
  /**
   * All that were begun, estimated by Kaplan and Meier, since some were cut. A sample that is drawn again counts each
   * time: only its last draw is seen to its end. Those are the hard prompts, so where tokens are thrown away the estimate
   * is some percent high, and the bias some points low: it warns too early, never too late.
   */
  admitted: LengthSummary;
  /** trained mean / admitted mean: 1 = unbiased, below 1 = short ones preferred. */
  lengthBias: number;
  /** Trained tokens that an older weight version made. */
  offPolicyShare: number;
  /** Weight versions between the oldest token of a sample and its training. */
  versionSpan: { mean: number; max: number };
  waste: { tokens: number; /** Of all tokens made. */ share: number; byReason: Record<string, number> };
  /** Standard deviation / mean of the steps' mean lengths. */
  batchVariation: number;
  cutsPerGroup: { mean: number; max: number };
  acceptance: Acceptance[];
  /**
   * What counts as trained because its trainer says so (`job.reconcile`): Redis had lost it, and knows no lengths, so it is
   * in nothing above. With it, `trained.samples` adds up to the trained requests of the job.
   */
  reconciled: { groups: number; samples: number };
}

/** What a trainer can afford; absent = any amount. Shares are 0 to 1. */
export interface LedgerBounds {
  /** |trained mean length / admitted mean length - 1|. */
  lengthBias?: number;
  offPolicyShare?: number;
  versionSpan?: number;
  wasteShare?: number;
  batchVariation?: number;
  cutsPerGroup?: number;
}
export interface LedgerAlarm {
  bound: keyof LedgerBounds;
  value: number;
  limit: number;
  /** `near`: above 80 % of the bound. */
  state: 'near' | 'over';
}

/** `job.ledger`: what the tail policy has cost, over all steps of a job or in one of its last rounds. */
export class JobLedgerRequest {
  @IsId() job!: JobId;
  @IsOptional() @IsId() roundId?: RoundId;
}
export interface JobLedgerReply {
  summary: LedgerSummary;
  /** Bounds of the job's last policy, and 5 % of length bias, that are near or broken. */
  alarms: LedgerAlarm[];
}
