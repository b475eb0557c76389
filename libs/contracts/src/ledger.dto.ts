import { JobRequest } from './common.dto';
import { IsOptional } from 'class-validator';
import { IsCounter, IsDecimal, IsId } from './rules';
import type { Integer, RoundId } from './scalars';

/** Lengths of samples, tokens. */
export interface LengthSummary {
  /** How many. */
  samples: Integer;
  /** Mean, approximate: up to 1.6 % off. */
  meanTokens: number;
  /** Median, approximate: up to 3.2 % below the exact one, and never above the longest sample. */
  p50Tokens: number;
  /** 99th percentile, approximate as the median. */
  p99Tokens: number;
  /** Share that ended at the token budget. */
  capShare: number;
}
/** Mean and maximum. */
export interface MeanAndMax {
  /** The mean. */
  mean: number;
  /** The largest. */
  max: number;
}
/** Length and truncation of a part of the trained samples. */
export interface TrainedPart {
  /** How many. */
  samples: Integer;
  /** Mean length, tokens. */
  meanTokens: number;
  /** Share that ended at the token budget. */
  capShare: number;
}
/** Started samples of one range of lengths. */
export interface LengthRange {
  /** Shortest length of the range. */
  fromTokens: number;
  /** End of the range, exclusive. */
  toTokens: number;
  /** Samples that ended here. */
  finished: Integer;
  /** Samples that have not ended and have this length so far, and samples that were cut at it. */
  unfinished: Integer;
}
/** Samples of one range of lengths. */
export interface Acceptance extends Pick<LengthRange, 'fromTokens' | 'toTokens'> {
  /** Share of the trained samples / share of the started samples; weight a trained sample by the inverse. */
  ratio: number;
}
/** Summary of a ledger. Shares are 0 to 1. */
export interface LedgerSummary {
  /** Samples that were trained. */
  trained: LengthSummary;
  /**
   * All started samples, a Kaplan-Meier estimate because some were cut. A sample that is drawn again counts each time,
   * but only its last draw is observed to its end. These are the hard prompts, so if tokens are thrown away the
   * estimate is some percent too high and the bias some points too low: alarms come too early, never too late.
   */
  admitted: LengthSummary;
  /** Mean length of trained / of admitted samples: 1 = unbiased, below 1 = short samples are preferred. */
  lengthBias: number;
  /** Share of trained tokens from older weight versions. */
  offPolicyShare: number;
  /** Weight versions between the oldest token of a sample and its training. */
  versionSpan: MeanAndMax;
  /** Tokens that were thrown away. */
  waste: {
    /** How many. */
    tokens: Integer;
    /** Share of all generated tokens. */
    share: number;
    /** How many, by reason. */
    byReason: Record<string, Integer>;
  };
  /**
   * Trained samples by the kind of their round, from exact lengths: shows the effect of tail steps on length and
   * truncation.
   */
  trainedByKind: {
    /** Samples of rounds that are mostly new prompts. */
    short: TrainedPart;
    /** Samples of rounds from the long-tail queue. */
    long: TrainedPart;
  };
  /** Standard deviation / mean of the steps' mean lengths. */
  batchVariation: number;
  /** How often trained groups were cut. */
  cutsPerGroup: MeanAndMax;
  /** Samples by length, four ranges to each doubling; ranges without samples are left out. */
  lengths: LengthRange[];
  /** Share of samples that were trained, by length. */
  acceptance: Acceptance[];
  /**
   * Accepted groups that were not trained, as their rewards were equal. `lengthBias` and `acceptance` count their
   * samples as trained: it was not the tail policy that chose against them.
   */
  excluded: {
    /** Groups. */
    groups: Integer;
    /** Their samples. */
    samples: Integer;
  };
  /**
   * Groups and samples that `job.reconcile` counted as trained because Redis had lost them. Their lengths are unknown,
   * so they are in no other field; with `trained.samples` they are all trained requests of the job.
   */
  reconciled: {
    /** Groups. */
    groups: Integer;
    /** Their samples. */
    samples: Integer;
  };
}

export const LEDGER_BOUNDS = [
  'lengthBias',
  'truncatedShare',
  'offPolicyShare',
  'versionSpan',
  'wasteShare',
  'batchVariation',
  'cutsPerGroup',
] as const;
/** Bounds of the values of a ledger, each optional. Shares are 0 to 1. */
export class LedgerBounds implements Partial<Record<(typeof LEDGER_BOUNDS)[number], number>> {
  /**
   * |trained mean length / admitted mean length - 1|.
   * @default 0.05
   */
  @IsOptional() @IsDecimal(0, 100) lengthBias?: number;
  /** Share of trained samples that ended at the token budget. */
  @IsOptional() @IsDecimal(0, 1) truncatedShare?: number;
  /** Share of trained tokens from older weight versions. */
  @IsOptional() @IsDecimal(0, 1) offPolicyShare?: number;
  /** Weight versions between the oldest token of a sample and its training. */
  @IsOptional() @IsCounter(0) versionSpan?: Integer;
  /** Tokens thrown away / all generated tokens. */
  @IsOptional() @IsDecimal(0, 1) wasteShare?: number;
  /** Standard deviation / mean of the steps' mean lengths. */
  @IsOptional() @IsDecimal(0, 100) batchVariation?: number;
  /** How often a trained group was cut. */
  @IsOptional() @IsCounter(0) cutsPerGroup?: Integer;
}
/** A bound that is nearly reached or exceeded. */
export interface LedgerAlarm {
  /** Name of the bound. */
  bound: (typeof LEDGER_BOUNDS)[number];
  /** The value now. */
  value: number;
  /** The bound. */
  limit: number;
  /** `near`: above 80 % of the bound. */
  state: 'near' | 'over';
}

/**
 * `pool.ledger`: the cost of the tail policies of all jobs of the pool, over all their steps. The reply adds up the
 * ledgers of all jobs (`job.ledger`), so a job that is deleted takes its part with it.
 */
export class PoolLedgerRequest {}
export interface PoolLedgerReply {
  /** Costs over all samples together; `batchVariation` compares the steps of all jobs with each other. */
  summary: LedgerSummary;
  /** Number of jobs in the summary. */
  jobs: Integer;
}

/** `job.ledger`: the cost of the tail policy over all steps of a job or in one of its last rounds. */
export class JobLedgerRequest extends JobRequest {
  /** The round, among the last 16; absent: all steps of the job. */
  @IsOptional() @IsId() roundId?: RoundId;
}
export interface JobLedgerReply {
  /** Cost of the policy. */
  summary: LedgerSummary;
  /**
   * `lengthBias` of all steps up to `roundId`; absent without it. A round that trains groups which earlier rounds have
   * cut is compared with these earlier rounds. So under an unbiased policy this value approaches 1, while the length
   * bias of a single round does not.
   */
  lengthBiasSoFar?: number;
  /** Bounds of the last policy of the job (`alarms`) that are nearly reached or exceeded. */
  alarms: LedgerAlarm[];
}
