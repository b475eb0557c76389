import type { Integer } from './scalars';
import type { AutoBound, AutoReason, TailPolicyName } from './tail-policy.dto';

/**
 * How an adaptive over-provision was computed; lengths in tokens, times in the unit of the fit (tokens without a fit).
 */
export interface OverProvisionWhy {
  /** Groups in the estimate. */
  groups: Integer;
  /** Groups in the estimate that were cut before their end (censored). */
  censored: Integer;
  /** A short round ends when all but the tail are done: groups longer than this are its tail. */
  kneeTokens?: number;
  /** Share of groups that have a sample beyond the knee. */
  tailShare?: number;
  /** Value of the model, before damping and limits. */
  wanted?: number;
  /** Expected time of a short round. */
  shortRoundTime?: number;
  /** Expected time of a long round. */
  longRoundTime?: number;
  /** Limit of the value: too few lengths, the change of 1/16, the highest value, the KV caches. */
  limitedBy?: 'too-few' | 'damping' | 'cap' | 'kv';
}
/** How an adaptive `dripGroups` was computed. */
export interface DripWhy {
  /** New groups per second, moving average. */
  bulkPace: number;
  /** Groups of the queue per second, moving average. */
  tailPace: number;
  /** Value of the model, before damping. */
  wanted: number;
  /** Steps for which the value is still kept. */
  heldSteps: Integer;
}
/** Prediction of `auto` for one policy, by a replay of the samples of the last rounds. Shares are 0 to 1. */
export interface AutoRow {
  /** Never `auto`. */
  policy: TailPolicyName;
  /** Launched / needed groups. */
  overProvision: number;
  /** Time of a step under `wait` / under this policy. */
  speed: number;
  /** Trained tokens of older weights / trained tokens. */
  offPolicyShare: number;
  /** Highest number of steps between the first token of a group and its training. */
  versionSpan: Integer;
  /** Mean length of trained samples / of started samples. */
  lengthBias: number;
  /** Generated tokens that nobody trains / generated tokens. */
  wasteShare: number;
  /** Bounds that it would break; empty: it may be chosen. */
  breaks: AutoBound[];
}
/** Choice of `auto` for a round, and its reason. */
export interface AutoChoice {
  /** The policy of the round; never `auto`. */
  policy: TailPolicyName;
  reason: AutoReason;
  /**
   * Bounds that are known to be broken, whatever the reason, also if it is `late`: `measured` by the ledger of the job,
   * or `predicted` of the last choice by its replay. Absent if none is.
   */
  broken?: {
    /** By the ledger of the job; absent if none is. */
    measured?: AutoBound[];
    /** By the replay of the last choice; absent if none is. */
    predicted?: AutoBound[];
  };
  /** The fastest policy that keeps the bounds; absent while nothing is known. */
  best?: { policy: TailPolicyName; overProvision: number };
  /** Groups of closed rounds that the predictions are made from. */
  groups: Integer;
  /** All policies that it compared; empty while nothing is known, not all if it was late. */
  frontier: AutoRow[];
}
/** The choice of the policy for a round, and its reasons. */
export interface TailChoice {
  /** Launched / needed groups of all domains. */
  overProvision: number;
  /** By domain; '' if domains are not distinguished. Only if adaptive. */
  domains?: Record<
    string,
    {
      /** Launched / needed groups of this domain. */
      overProvision: number;
      /** How the value was computed. */
      why: OverProvisionWhy;
    }
  >;
  /** Groups taken from the long-tail queue; only for `drip`. */
  dripGroups?: Integer;
  /** How `dripGroups` was computed; only if adaptive. */
  drip?: DripWhy;
  /** Choice of `auto`; absent under the other policies. */
  auto?: AutoChoice;
}
