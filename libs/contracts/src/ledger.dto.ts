import { JobRequest } from './common.dto';
import { IsOptional } from 'class-validator';
import { IsCounter, IsDecimal, IsId } from './rules';
import type { Integer, RoundId } from './scalars';

/** Lengths of samples, tokens. */
export interface LengthSummary {
  /** Number of samples. */
  samples: Integer;
  /** Mean, approximate: up to 1.6 % off. */
  meanTokens: number;
  /** Median, approximate: up to 3.2 % below the exact one, and never above the longest sample. */
  p50Tokens: number;
  /** 99th percentile, as approximate as the median. */
  p99Tokens: number;
  /** Share of the samples that ended at the token budget. */
  capShare: number;
}
/** Mean and maximum. */
export interface MeanAndMax {
  /** Mean of the values. */
  mean: number;
  /** Largest of the values. */
  max: number;
}
/** Length and truncation of a part of the trained samples. */
export interface TrainedPart {
  /** Number of samples. */
  samples: Integer;
  /** Mean length, tokens. */
  meanTokens: number;
  /** Share of the samples that ended at the token budget. */
  capShare: number;
}
/** Samples of one range of lengths that ended or were cut. */
export interface LengthRange {
  /** Shortest length of the range. */
  fromTokens: number;
  /** End of the range, exclusive. */
  toTokens: number;
  /** Samples that ended in this range. */
  finished: Integer;
  /** Samples that were cut at this length. Samples that run are not counted. */
  unfinished: Integer;
}
/** Acceptance of one range of lengths. */
export interface Acceptance extends Pick<LengthRange, 'fromTokens' | 'toTokens'> {
  /** Share of the trained samples / share of the started samples. Weight a trained sample by the inverse. */
  ratio: number;
}
/** Summary of a ledger. Shares are 0 to 1. */
export interface LedgerSummary {
  /** Samples that were trained. */
  trained: LengthSummary;
  /**
   * All started samples. The lengths are a Kaplan-Meier estimate, because some samples were cut. A sample that is
   * generated again counts each time, and only the last time has a known length. Long samples are generated again most
   * often. So if tokens are thrown away, the estimate is some percent too high, and alarms come too early, never too
   * late.
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
    /** Number of tokens. */
    tokens: Integer;
    /** Share of all generated tokens. */
    share: number;
    /** Number of tokens, by reason. */
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
  /** Standard deviation / mean, over the mean lengths of the steps. */
  batchVariation: number;
  /** How often trained groups were cut. */
  cutsPerGroup: MeanAndMax;
  /** Samples by length, four ranges to each doubling; ranges without samples are left out. */
  lengths: LengthRange[];
  /** Share of samples that were trained, by length. */
  acceptance: Acceptance[];
  /**
   * Accepted groups that were not trained, because their rewards were equal. `lengthBias` and `acceptance` count their
   * samples as trained, because the tail policy has accepted them.
   */
  excluded: {
    /** Groups. */
    groups: Integer;
    /** Samples of these groups. */
    samples: Integer;
  };
  /**
   * Groups and samples that `job.reconcile` counted as trained because Redis had lost them. The lengths are unknown, so
   * no other field counts them. All trained requests of the job are `samples` and `trained.samples` together.
   */
  reconciled: {
    /** Groups. */
    groups: Integer;
    /** Samples of these groups. */
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
  /** Standard deviation / mean, over the mean lengths of the steps. */
  @IsOptional() @IsDecimal(0, 100) batchVariation?: number;
  /** How often a trained group was cut. */
  @IsOptional() @IsCounter(0) cutsPerGroup?: Integer;
}
/** A bound that is nearly reached or exceeded. */
export interface LedgerAlarm {
  /** Name of the bound. */
  bound: (typeof LEDGER_BOUNDS)[number];
  /** Current value of what the bound limits. */
  value: number;
  /** Most that the value may be. */
  limit: number;
  /** `near`: the value is above 80 % of the bound. */
  state: 'near' | 'over';
}

/**
 * `pool.ledger`: the cost of the tail policies of all jobs of the pool, over all their steps. The reply adds up the
 * ledgers of all present jobs (`job.ledger`). Deleted jobs do not count.
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
   * `lengthBias` of all steps up to `roundId`; absent without `roundId`. The value of an unbiased policy approaches 1.
   * The length bias of a single round does not, because some of its groups were started in earlier rounds.
   */
  lengthBiasSoFar?: number;
  /** Bounds of the last policy of the job (`alarms`) that are nearly reached or exceeded. */
  alarms: LedgerAlarm[];
}
