import { Type } from 'class-transformer';
import { IsIn, IsBoolean, IsNumber, IsObject, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { LedgerBounds } from './ledger.dto';
import { LIMITS } from './limits';
import { IsCounter, IsWithin } from './rules';
import type { Integer } from './scalars';

export const TAIL_POLICIES = ['wait', 'regenerate', 'resume', 'drip', 'fixed-concurrency', 'auto'] as const;
/**
 * How a round treats its slowest groups (libs/policies/src/tail/README.md). `auto` chooses another policy for each
 * round, within bounds.
 */
export type TailPolicyName = (typeof TAIL_POLICIES)[number];
export const AUTO_BOUNDS = ['maxOffPolicyShare', 'maxVersionSpan', 'maxLengthBias', 'maxWaste'] as const;
/** A bound of the policy `auto`. */
export type AutoBound = (typeof AUTO_BOUNDS)[number];
export const AUTO_REASONS = ['unknown', 'best', 'step', 'predicted', 'measured', 'late'] as const;
/**
 * Why `auto` chose a policy. `unknown`: too few closed groups for a prediction; the choice is `wait`. `best`: the best
 * policy within the bounds. `step`: a step towards the best policy. `predicted`: the last choice would break a bound.
 * `measured`: a step back, because the ledger of the job breaks a bound. `late`: the replays took too long, so only
 * `wait`, the last choice and the nearest candidates were compared.
 */
export type AutoReason = (typeof AUTO_REASONS)[number];
export const CHOICE_MODES = ['fixed', 'adaptive'] as const;
/** `fixed`: the policy uses the given number. `adaptive`: the given number is the initial value. */
export type ChoiceMode = (typeof CHOICE_MODES)[number];
export const CUT_SEMANTICS = ['keep', 'discard'] as const;
/** Whether the tokens of cut samples are kept. */
export type CutSemantics = (typeof CUT_SEMANTICS)[number];

export const EQUAL_REWARDS = ['keep', 'exclude', 'replace'] as const;
/** Treatment of a group with equal rewards. */
export type EqualRewards = (typeof EQUAL_REWARDS)[number];

export const WASTE_REASONS = [
  /** Tokens of cut samples, under a policy that discards these tokens. */
  'cut',
  /** Tokens of finished samples of groups that were not accepted, under a policy that discards these tokens. */
  'unaccepted',
  /** Tokens of surplus samples. */
  'surplus',
  /** Tokens of failed groups. */
  'failed',
  /** Tokens of aborted samples and groups. */
  'aborted',
  /** Tokens older than `maxVersionSpan` when their group was taken. */
  'version-span',
  /** Tokens beyond `maxOffPolicyShare` when their group was taken. */
  'off-policy',
  /** Tokens that could not be stored (the payload store was full or unavailable), or that an engine had not sent. */
  'not-stored',
  'missing',
  /** Tokens of samples that exceeded their `timeoutMs`. */
  'timeout',
  /** Tokens of accepted groups that are not trained, because their rewards are equal. */
  'equal-rewards',
] as const;
/** Reason for which tokens were thrown away (docs/protocol, section `What a policy costs`). */
export type WasteReason = (typeof WASTE_REASONS)[number];

export const DISPATCH_ORDERS = ['arrival', 'longest-first', 'probe-first'] as const;
/**
 * Order in which requests of new groups are claimed. `arrival`: the order of submission. `longest-first`: by the prompt
 * memory; unknown prompts count with their budget. `probe-first`: one sample of each unknown prompt first, to learn a
 * length for its group (Seer); then longest first.
 */
export type DispatchOrder = (typeof DISPATCH_ORDERS)[number];

const FINITE = { allowNaN: false, allowInfinity: false };

/** The tail policy of a round. libs/policies/src/tail/README.md describes the valid combinations of fields. */
export class TailPolicy {
  /** How the round treats its slowest groups. */
  @IsIn(TAIL_POLICIES) name!: TailPolicyName;
  /** Launched groups / needed groups, at least 1. Required, except for `wait` and `auto`. */
  @IsOptional() @IsNumber(FINITE) @Min(1) @Max(16) overProvision?: number;
  /**
   * `adaptive`: computed from the lengths of the last steps, by domain, starting at `overProvision`.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) overProvisionMode?: ChoiceMode;
  /**
   * Launched samples / samples of a group, at least 1. The first samples to finish are trained, the others are dropped.
   * @default 1
   */
  @IsOptional() @IsNumber(FINITE) @Min(1) @Max(16) sampleOverProvision?: number;
  /** Whether the tokens of cut samples are kept. Default: `discard` for `regenerate`, `keep` for all other policies. */
  @IsOptional() @IsIn(CUT_SEMANTICS) onCut?: CutSemantics;
  /**
   * For `drip`: groups that each round takes from the long-tail queue; default: as many as the round launches beyond
   * its need.
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerRound) dripGroups?: Integer;
  /**
   * For `drip`. `adaptive`: computed from the pace of taken and new groups (TailSieve), starting at `dripGroups` or 1.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) dripMode?: ChoiceMode;
  /**
   * For `drip`: true reserves a place for each taken group, so that the group is not cut again. Default: true with an
   * adaptive `dripMode` or with `domainQuotas`.
   */
  @IsOptional() @IsBoolean() dripReserved?: boolean;
  /** For `fixed-concurrency`: maximum requests of the round that workers have at the same time. */
  @IsOptional() @IsWithin(1, 1_000_000) concurrency?: Integer;
  /** Groups of each named domain in a whole step. All other domains share the rest. */
  @IsOptional() @IsObject() domainQuotas?: Record<string, Integer>;
  /**
   * Tokens of this job that fit into the KV caches of the engines; limits an adaptive over-provision. Default: the sum
   * over the reports of all engines of the pool; no limit if one engine reports nothing.
   */
  @IsOptional() @IsCounter(1) fleetKvTokens?: Integer;

  /**
   * Order in which requests of new groups are claimed.
   * @default 'arrival'
   */
  @IsOptional() @IsIn(DISPATCH_ORDERS) dispatchOrder?: DispatchOrder;

  /** Maximum cuts of a group. The next round takes the group and does not cut it. */
  @IsOptional() @IsCounter(1) maxCuts?: Integer;
  /** Maximum steps after the first step of a group. The last round takes the group and does not cut it. */
  @IsOptional() @IsCounter(1) maxAgeSteps?: Integer;
  /** Maximum weight versions between the oldest token of a group and the round that ends it. Under `auto`: 2. */
  @IsOptional() @IsCounter(0) maxVersionSpan?: Integer;
  /**
   * Maximum share: tokens of groups from earlier rounds / expected tokens of the batch. `auto` keeps this bound by its
   * choice, without throwing tokens away.
   */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxOffPolicyShare?: number;
  /**
   * For `auto`: maximum difference between the mean lengths of trained and of started samples, as a share. Absent:
   * `auto` chooses no policy that throws tokens of cut samples away, so the lengths are not biased.
   */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxLengthBias?: number;
  /**
   * For `auto`: maximum share: tokens that the tail policy throws away / generated tokens. Tokens of failed and aborted
   * samples and of groups with equal rewards do not count.
   */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxWaste?: number;
  /** Maximum share: groups of the long-tail queue / groups of the batch, while there are new groups. */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxLongtailShare?: number;
  /**
   * Time after which the round completes with the groups accepted so far, milliseconds; absent = never. Overrides all
   * bounds.
   */
  @IsOptional() @IsCounter(1) deadlineMs?: Integer;
  /**
   * If accepted + live < needed, the round waits for other groups (`replace`), or accepts fewer groups.
   * @default 'replace'
   */
  @IsOptional() @IsIn(['replace', 'accept-fewer']) shortfall?: 'replace' | 'accept-fewer';
  /**
   * Treatment of groups with equal rewards of several samples (`round.reward`), from which GRPO learns nothing. `keep`:
   * such groups are trained. `exclude`: such groups are not trained, so the step trains fewer groups. `replace`:
   * another group takes the place of each such group (dynamic sampling of DAPO), and the round completes when all
   * rewards are reported; a group is trained if no other group is left.
   * @default 'keep'
   */
  @IsOptional() @IsIn(EQUAL_REWARDS) equalRewards?: EqualRewards;
  /**
   * For `equalRewards` `replace`: maximum groups that one round replaces. Further groups with equal rewards are
   * trained. Default: nine for each group that the step trains.
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerRound) maxReplacedGroups?: Integer;
  /**
   * Bounds of the ledger. An alarm is raised when a value is near or over its bound. Defaults: `offPolicyShare` =
   * `maxOffPolicyShare`, `versionSpan` = `maxVersionSpan`, `cutsPerGroup` = `maxCuts`; under `auto` also `lengthBias` =
   * `maxLengthBias` and `wasteShare` = `maxWaste`. `maxWaste` counts only the waste of the tail policy; a given
   * `wasteShare` counts all waste.
   */
  @IsOptional() @ValidateNested() @Type(() => LedgerBounds) alarms?: LedgerBounds;
  /**
   * Number of different servers that may fail one request without a new token before the request fails for good. A
   * restarted server counts as a different server. No failure counts while more than half of the servers fail other
   * prompts too. The same servers may fail the request again for REQUEST_FAILURE_DEADLINE_MS of the coordinator.
   * @default 3
   */
  @IsOptional() @IsWithin(0, 1_000) maxFailures?: Integer;
  /**
   * Number of attempts of one request that may return unfinished for other reasons (for example an expired worker, no
   * server, a full payload store) before the request fails for good. Cuts, moves and changes of weights do not count.
   * @default 1000
   */
  @IsOptional() @IsWithin(0, 1_000_000) maxReturns?: Integer;
}

/** Rules of a round for transitions, computed from the policy when the round is opened. */
export interface RoundRules {
  onCut: CutSemantics;
  /** True if every taken group has a reserved place. */
  reservesTaken: boolean;
  /**
   * Launched samples / samples of a group. In a long round and under `wait` the ratio is 1, and groups of the queue
   * lose surplus samples.
   */
  sampleOverProvision: number;
  /** Requests that workers may have at once; 0 = any number. */
  concurrency: number;
  maxFailures: number;
  maxReturns: number;
  acceptsFewer: boolean;
  /** No bound: 0, for `maxVersionSpan` -1. */
  maxCuts: number;
  maxAgeSteps: number;
  maxVersionSpan: number;
  dispatchOrder: DispatchOrder;
  equalRewards: EqualRewards;
}
