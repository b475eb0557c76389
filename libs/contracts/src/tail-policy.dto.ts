import { Type } from 'class-transformer';
import { IsIn, IsBoolean, IsNumber, IsObject, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { LedgerBounds } from './ledger.dto';
import { LIMITS } from './limits';
import { IsCounter, IsWithin } from './rules';
import type { Integer } from './scalars';

export const TAIL_POLICIES = ['wait', 'regenerate', 'resume', 'drip', 'fixed-concurrency', 'auto'] as const;
/**
 * How a round treats its slowest groups (libs/policies/src/tail/README.md). `auto` chooses one of the others for each
 * round, within bounds.
 */
export type TailPolicyName = (typeof TAIL_POLICIES)[number];
export const AUTO_BOUNDS = ['maxOffPolicyShare', 'maxVersionSpan', 'maxLengthBias', 'maxWaste'] as const;
/** A bound of the policy `auto`. */
export type AutoBound = (typeof AUTO_BOUNDS)[number];
export const AUTO_REASONS = ['unknown', 'best', 'step', 'predicted', 'measured', 'late'] as const;
/**
 * Why `auto` chose a policy. `unknown`: too few groups are closed to predict anything, so it waits. `best`: it is the
 * best that keeps the bounds. `step`: it is on the way to the best. `predicted`: the last choice would break a bound.
 * `measured`: the ledger of the job breaks a bound, so it goes back. `late`: the replays took too long, so it chose
 * among `wait`, its last choice and the candidates nearest to that choice.
 */
export type AutoReason = (typeof AUTO_REASONS)[number];
export const CHOICE_MODES = ['fixed', 'adaptive'] as const;
/** `fixed`: the given number. `adaptive`: the given number is the initial value. */
export type ChoiceMode = (typeof CHOICE_MODES)[number];
export const CUT_SEMANTICS = ['keep', 'discard'] as const;
/** Whether the tokens of cut samples are kept. */
export type CutSemantics = (typeof CUT_SEMANTICS)[number];

export const EQUAL_REWARDS = ['keep', 'exclude', 'replace'] as const;
/** Treatment of a group whose rewards are all equal. */
export type EqualRewards = (typeof EQUAL_REWARDS)[number];

export const WASTE_REASONS = [
  /** Tokens of cut samples, under a policy that discards them. */
  'cut',
  /** Tokens of finished samples whose group was not accepted, under a policy that discards them. */
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
  /** Tokens that could not be stored: the payload store was full or unavailable. */
  'not-stored',
  'missing',
  /** Tokens of samples that exceeded their `timeoutMs`. */
  'timeout',
  /** Tokens of accepted groups that are not trained, as their rewards are equal. */
  'equal-rewards',
] as const;
/** Reason for which tokens were thrown away (docs/protocol, section `What a policy costs`). */
export type WasteReason = (typeof WASTE_REASONS)[number];

export const DISPATCH_ORDERS = ['arrival', 'longest-first', 'probe-first'] as const;
/**
 * Order in which requests of new groups are claimed. `arrival`: as submitted. `longest-first`: by the prompt memory;
 * unknown prompts count with their whole budget. `probe-first`: one sample of each unknown prompt first, whose length
 * is then assumed for its siblings (Seer); otherwise longest first.
 */
export type DispatchOrder = (typeof DISPATCH_ORDERS)[number];

const FINITE = { allowNaN: false, allowInfinity: false };

/** The tail policy of a round, as data. libs/policies/src/tail describes which fields can be combined. */
export class TailPolicy {
  /** How the round treats its slowest groups. */
  @IsIn(TAIL_POLICIES) name!: TailPolicyName;
  /** Launched groups / needed groups, at least 1. Needed by all policies but `wait` and `auto`. */
  @IsOptional() @IsNumber(FINITE) @Min(1) @Max(16) overProvision?: number;
  /**
   * `adaptive`: computed from the lengths of the last steps, by domain, starting at `overProvision`.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) overProvisionMode?: ChoiceMode;
  /**
   * Launched samples / samples of a group, at least 1: the first samples to finish are trained, the others are dropped.
   * @default 1
   */
  @IsOptional() @IsNumber(FINITE) @Min(1) @Max(16) sampleOverProvision?: number;
  /**
   * Whether the tokens of cut samples are kept; `regenerate` discards them, all other policies keep them by default.
   */
  @IsOptional() @IsIn(CUT_SEMANTICS) onCut?: CutSemantics;
  /**
   * `drip`: groups each round takes from the long-tail queue; default: as many as the round launches beyond its need.
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerRound) dripGroups?: Integer;
  /**
   * For `drip`. `adaptive`: computed from the pace of taken and new groups (TailSieve), starting at `dripGroups` or 1.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) dripMode?: ChoiceMode;
  /**
   * For `drip`: a place is reserved for each taken group, so it is not cut again. Default: true if `dripMode` is
   * adaptive or there are `domainQuotas`.
   */
  @IsOptional() @IsBoolean() dripReserved?: boolean;
  /** For `fixed-concurrency`: maximum requests of the round that workers have at the same time. */
  @IsOptional() @IsWithin(1, 1_000_000) concurrency?: Integer;
  /** Groups of each domain in a whole step; other domains share the rest. */
  @IsOptional() @IsObject() domainQuotas?: Record<string, Integer>;
  /**
   * Tokens that fit into the KV caches of the engines for this job; limits adaptive over-provision. Default: the sum
   * that the engines of the pool report; no limit if one of them reports nothing.
   */
  @IsOptional() @IsCounter(1) fleetKvTokens?: Integer;

  /**
   * Order in which requests of new groups are claimed.
   * @default 'arrival'
   */
  @IsOptional() @IsIn(DISPATCH_ORDERS) dispatchOrder?: DispatchOrder;

  /** A group with this many cuts is taken next and not cut again. */
  @IsOptional() @IsCounter(1) maxCuts?: Integer;
  /** A group is taken at most this many steps after its first step, and not cut again. */
  @IsOptional() @IsCounter(1) maxAgeSteps?: Integer;
  /** Maximum weight versions between the oldest token of a group and the round that ends it. Under `auto`: 2. */
  @IsOptional() @IsCounter(0) maxVersionSpan?: Integer;
  /**
   * Maximum share: tokens of groups from earlier rounds / expected tokens of the batch. `auto` keeps it by its choice,
   * and throws no token away for it.
   */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxOffPolicyShare?: number;
  /**
   * For `auto`: how much the mean length of trained samples may differ from the mean length of all samples started, as
   * a share. Absent: no policy is chosen that throws tokens of cut samples away, so that nothing is biased.
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
   * Time after which the round completes with its accepted groups, milliseconds; absent = never. Overrides all bounds.
   */
  @IsOptional() @IsCounter(1) deadlineMs?: Integer;
  /**
   * If accepted + live < needed: wait for replacements, or accept fewer groups.
   * @default 'replace'
   */
  @IsOptional() @IsIn(['replace', 'accept-fewer']) shortfall?: 'replace' | 'accept-fewer';
  /**
   * Groups of more than one sample whose rewards are all equal (`round.reward`): GRPO learns nothing from them.
   * `keep`: they are trained. `exclude`: they are not, so the step trains fewer groups. `replace`: another group takes
   * the place of each, so the step trains exactly its groups (dynamic sampling of DAPO); the round completes when the
   * rewards of all its groups are reported. If there is no other group, it is trained.
   * @default 'keep'
   */
  @IsOptional() @IsIn(EQUAL_REWARDS) equalRewards?: EqualRewards;
  /**
   * For `equalRewards` `replace`: groups that one round replaces; all further groups with equal rewards are trained.
   * Default: nine for each group the step trains.
   */
  @IsOptional() @IsWithin(1, LIMITS.groupsPerRound) maxReplacedGroups?: Integer;
  /**
   * Bounds of the ledger: an alarm is raised when one is nearly reached or exceeded. Default of `offPolicyShare`,
   * `versionSpan` and `cutsPerGroup`: `maxOffPolicyShare`, `maxVersionSpan` and `maxCuts`; under `auto` also of
   * `lengthBias` and `wasteShare`: `maxLengthBias` and `maxWaste` (`maxWaste` counts the waste of the tail policy; a
   * given bound of `wasteShare` counts all waste).
   */
  @IsOptional() @ValidateNested() @Type(() => LedgerBounds) alarms?: LedgerBounds;
  /**
   * Different servers that may fail one request, one after the other without a further token, before it fails for good;
   * a server that has restarted is another one. While more than half of the servers fail other prompts too, no failure
   * counts. The same servers may fail it again for REQUEST_FAILURE_DEADLINE_MS of the coordinator.
   * @default 3
   */
  @IsOptional() @IsWithin(0, 1_000) maxFailures?: Integer;
  /**
   * Attempts of one request that may return unfinished for other reasons (its engine or worker dropped it, no server, a
   * full payload store, ...) before it fails for good. Cuts, moves and weight changes do not count.
   * @default 1000
   */
  @IsOptional() @IsWithin(0, 1_000_000) maxReturns?: Integer;
}

/** Rules that the transitions of a round depend on, computed once from its policy when it is opened. */
export interface RoundRules {
  onCut: CutSemantics;
  /** A place is reserved for every group taken. */
  reservesTaken: boolean;
  /**
   * Launched samples / samples of a group; 1 in a long round and under `wait`: groups of the queue are trimmed to it.
   */
  sampleOverProvision: number;
  /** Requests that workers may have at once; 0 = any number. */
  concurrency: number;
  maxFailures: number;
  maxReturns: number;
  acceptsFewer: boolean;
  /** 0 = no such bound (a version span of 0 is -1). */
  maxCuts: number;
  maxAgeSteps: number;
  maxVersionSpan: number;
  dispatchOrder: DispatchOrder;
  equalRewards: EqualRewards;
}
