import { IsIn, IsInt, IsBoolean, IsNumber, IsObject, IsOptional, Max, Min } from 'class-validator';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';

export const TAIL_POLICIES = ['wait', 'regenerate', 'resume', 'drip', 'fixed-concurrency'] as const;
/** What becomes of the slowest groups of a round (libs/policies/src/tail/README.md). */
export type TailPolicyName = (typeof TAIL_POLICIES)[number];
export const CHOICE_MODES = ['fixed', 'adaptive'] as const;
/** `fixed`: the number given. `adaptive`: the number given is where it begins. */
export type ChoiceMode = (typeof CHOICE_MODES)[number];
export const CUT_SEMANTICS = ['keep', 'discard'] as const;
/** Whether the tokens of cut samples are kept. */
export type CutSemantics = (typeof CUT_SEMANTICS)[number];

export const WASTE_REASONS = [
  /** Of samples that were cut and whose policy keeps nothing. */
  'cut',
  /** Of finished samples whose group was not accepted, under a policy that keeps nothing. */
  'unaccepted',
  /** Of siblings beyond the samples their group needs. */
  'surplus',
  /** Of groups that failed. */
  'failed',
  /** Of samples and groups that were aborted. */
  'aborted',
  /** Older than `maxVersionSpan` when their group was taken. */
  'version-span',
  /** More than `maxOffPolicyShare` when their group was taken. */
  'off-policy',
  /** Made, and not stored: the payload store was full or away. */
  'not-stored',
  'missing',
  /** Of samples that have taken longer than their `timeoutMs`. */
  'timeout',
] as const;
/** Why tokens were thrown away (docs/protocol: What a policy costs). */
export type WasteReason = (typeof WASTE_REASONS)[number];

export const DISPATCH_ORDERS = ['arrival', 'longest-first', 'probe-first'] as const;
/**
 * In which order requests of new groups are claimed. `arrival`: as submitted. `longest-first`: by the prompt memory,
 * those it does not know as if they took their whole budget. `probe-first`: one sample of each unknown prompt first,
 * whose length then stands for its siblings (Seer); else longest first.
 */
export type DispatchOrder = (typeof DISPATCH_ORDERS)[number];

const FINITE = { allowNaN: false, allowInfinity: false };

/** The tail policy of a round, as data. What goes together and what contradicts itself: libs/policies/src/tail. */
export class TailPolicy {
  /** What becomes of the slowest groups. */
  @IsIn(TAIL_POLICIES) name!: TailPolicyName;
  /** Launched groups / needed groups, at least 1. */
  @IsNumber(FINITE) @Min(1) @Max(16) overProvision!: number;
  /**
   * `adaptive`: from the lengths of the last steps, per domain; begins with `overProvision`.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) overProvisionMode?: ChoiceMode;
  /**
   * Launched samples / samples of a group, at least 1: the first to finish are trained, the others dropped.
   * @default 1
   */
  @IsOptional() @IsNumber(FINITE) @Min(1) @Max(16) sampleOverProvision?: number;
  /** What becomes of tokens that are cut; `regenerate` discards, all others keep unless they say so here. */
  @IsOptional() @IsIn(CUT_SEMANTICS) onCut?: CutSemantics;
  /**
   * `drip`: groups each round takes from the long-tail queue; default: as many as the round launches beyond its need.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) dripGroups?: Integer;
  /**
   * `drip`, `adaptive`: by the pace of taken and new groups (TailSieve), from `dripGroups` or 1 on.
   * @default 'fixed'
   */
  @IsOptional() @IsIn(CHOICE_MODES) dripMode?: ChoiceMode;
  /** `drip`: a place is reserved for each group taken, so it is not cut again. Default: when `dripMode` is adaptive. */
  @IsOptional() @IsBoolean() dripReserved?: boolean;
  /** `fixed-concurrency`: requests of the round that workers have at most at once. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000) concurrency?: Integer;
  /** Groups of each domain a whole step needs; a domain that is not named shares what they leave. */
  @IsOptional() @IsObject() domainQuotas?: Record<string, Integer>;
  /** Tokens that fit into the KV caches of all engines; a bound of adaptive over-provision. */
  @IsOptional() @IsCounter(1) fleetKvTokens?: Integer;

  /**
   * In which order requests of new groups are claimed.
   * @default 'arrival'
   */
  @IsOptional() @IsIn(DISPATCH_ORDERS) dispatchOrder?: DispatchOrder;

  /** A group that was cut this often is taken next and runs to its end. */
  @IsOptional() @IsCounter(1) maxCuts?: Integer;
  /** A group is taken for the step this many after its first at the latest, and runs to its end. */
  @IsOptional() @IsCounter(1) maxAgeSteps?: Integer;
  /** Weight versions between the oldest token of a group and the round that ends it, at most. */
  @IsOptional() @IsCounter(0) maxVersionSpan?: Integer;
  /** Tokens that groups bring from earlier rounds / expected tokens of the batch, at most. */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxOffPolicyShare?: number;
  /** Groups of the long-tail queue / groups of the batch, at most, as long as there are new groups. */
  @IsOptional() @IsNumber(FINITE) @Min(0) @Max(1) maxLongtailShare?: number;
  /** Complete the round with what is accepted after this long, milliseconds; absent = never. Wins over all bounds. */
  @IsOptional() @IsCounter(1) deadlineMs?: Integer;
  /**
   * When accepted + live < needed: wait for replacements, or need fewer.
   * @default 'replace'
   */
  @IsOptional() @IsIn(['replace', 'accept-fewer']) shortfall?: 'replace' | 'accept-fewer';
  /**
   * Engine failures of one request before it fails for good.
   * @default 3
   */
  @IsOptional() @IsInt() @Min(0) @Max(1_000) maxFailures?: Integer;
  /**
   * Attempts of one request that may come back unfinished for any other reason (its engine or worker dropped it, no
   * server, a full payload store, ...) before it fails for good. What was asked for (cut, move, new weights) is not
   * counted.
   * @default 1000
   */
  @IsOptional() @IsInt() @Min(0) @Max(1_000_000) maxReturns?: Integer;
}

/** How an adaptive over-provision came about; lengths in tokens, times in the unit of the fit (tokens without one). */
export interface OverProvisionWhy {
  /** Groups looked at, of them cut before their end (censored). */
  groups: Integer;
  /** Of them cut before their end. */
  censored: Integer;
  /** A short round ends when all but the tail are done: groups longer than this are its tail. */
  kneeTokens?: number;
  /** Share of groups that have a sample beyond the knee. */
  tailShare?: number;
  /** What the model asks for, before damping and caps. */
  wanted?: number;
  /** Expected time of a short round. */
  shortRoundTime?: number;
  /** Expected time of a long round. */
  longRoundTime?: number;
  /** What held it back: too few lengths yet, the step of 1/16, the highest value, the KV caches. */
  limitedBy?: 'too-few' | 'damping' | 'cap' | 'kv';
}
/** How an adaptive `dripGroups` came about. */
export interface DripWhy {
  /** Groups per second, moving averages. */
  bulkPace: number;
  /** Groups of the queue per second, moving average. */
  tailPace: number;
  /** What the model asks for, before damping. */
  wanted: number;
  /** Steps it is still held. */
  heldSteps: Integer;
}
/** What the policy chose for a round, and why. */
export interface TailChoice {
  /** Launched / needed of all domains together. */
  overProvision: number;
  /** Per domain; '' when domains are not told apart. Only when adaptive. */
  domains?: Record<
    string,
    {
      /** Launched / needed of this domain. */
      overProvision: number;
      /** How it came about. */
      why: OverProvisionWhy;
    }
  >;
  /** Groups taken from the long-tail queue; only under `drip`. */
  dripGroups?: Integer;
  /** How `dripGroups` came about; only when adaptive. */
  drip?: DripWhy;
}

/** What the transitions of a round depend on, worked out once from its policy when it is opened. */
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
}
