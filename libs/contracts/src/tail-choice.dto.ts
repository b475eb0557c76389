import type { Integer } from './scalars';
import type { AutoBound, AutoReason, TailPolicyName } from './tail-policy.dto';

/**
 * How an adaptive over-provision was computed. Times are milliseconds, or tokens if round times could not be fitted.
 */
export interface OverProvisionWhy {
  /** Groups in the estimate. */
  groups: Integer;
  /** Groups in the estimate that were cut before their end. */
  censored: Integer;
  /** Length at which a short round ends. Longer groups are the tail of the round. */
  kneeTokens?: number;
  /** Share of groups with a sample that is longer than `kneeTokens`. */
  tailShare?: number;
  /** Value of the model, before damping and limits. */
  wanted?: number;
  /** Expected time of a short round. */
  shortRoundTime?: number;
  /** Expected time of a long round. */
  longRoundTime?: number;
  /** Limit that changed the value: too few lengths, the change of 1/16 a step, the highest value, or the KV caches. */
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
  /** Number of steps for which the value stays. */
  heldSteps: Integer;
}
/** Prediction of `auto` for one policy, by a replay of the samples of the last rounds. Shares are 0 to 1. */
export interface AutoRow {
  /** The policy; never `auto`. */
  policy: TailPolicyName;
  /** Launched / needed groups. */
  overProvision: number;
  /** Time of a step under `wait` / time of a step under this policy. */
  speed: number;
  /** Trained tokens of older weights / trained tokens. */
  offPolicyShare: number;
  /** Highest number of steps between the first token of a group and its training. */
  versionSpan: Integer;
  /** Mean length of trained samples / of started samples. */
  lengthBias: number;
  /** Generated tokens that nobody trains / generated tokens. */
  wasteShare: number;
  /** Bounds that the policy would break; empty for a valid choice. */
  breaks: AutoBound[];
}
/** Choice of `auto` for a round, and its reason. */
export interface AutoChoice {
  /** The policy of the round; never `auto`. */
  policy: TailPolicyName;
  reason: AutoReason;
  /** Broken bounds, with any reason of the choice; absent if no bound is broken. */
  broken?: {
    /** Bounds that the ledger of the job breaks. */
    measured?: AutoBound[];
    /** Bounds that the replay of the last choice breaks. */
    predicted?: AutoBound[];
  };
  /** The fastest policy that keeps the bounds; absent while nothing is known. */
  best?: { policy: TailPolicyName; overProvision: number };
  /** Number of groups of closed rounds in the predictions. */
  groups: Integer;
  /** Compared policies; empty while nothing is known, and incomplete for the reason `late`. */
  frontier: AutoRow[];
}
/** The choice of the policy for a round, and its reasons. */
export interface TailChoice {
  /** Launched / needed groups over all domains. */
  overProvision: number;
  /** Over-provision by domain ('' = no domain); only if adaptive. */
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
  /** How an adaptive `dripGroups` was computed; only if adaptive. */
  drip?: DripWhy;
  /** Choice of `auto`; absent under the other policies. */
  auto?: AutoChoice;
}
