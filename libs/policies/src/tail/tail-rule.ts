import type { CutSemantics, RoundKind, TailPolicy, TailPolicyName } from '@broomwagon/contracts';

/** A policy that forms rounds itself. */
export type FixedPolicyName = Exclude<TailPolicyName, 'auto'>;
/** A policy with all that its rules need: never `auto`, which chooses one of these. */
export type FixedPolicy = TailPolicy & { name: FixedPolicyName; overProvision: number };

/** Situation in which a tail policy forms a round. All counts are groups. */
export interface Situation {
  /** Groups that the round trains: min(groups per step, groups not trained). */
  needed: number;
  groupsPerStep: number;
  /** Groups in the long-tail queue or on their way there. */
  queued: number;
  /** Queued groups that cannot wait: finished, or pinned by a bound. At most `needed`. */
  urgent: number;
  /** Groups never submitted. */
  remaining: number;
  /** ceil(over-provision x needed), at most the remaining groups and what a round may have. */
  launched: number;
  /** Groups that `drip` takes. */
  dripGroups: number;
}

export interface Formation {
  kind: RoundKind;
  /** Groups of the queue; bounds and the end of the data may change it. */
  take: number;
  /** Groups of the round; the groups beyond `take` are new as long as there are new ones. */
  launch: number;
}

/**
 * A tail policy: the rule by which a round is formed and its tail is treated; tail-rules.ts has all policies. Rules
 * that they share (exact steps, pins, reserved places, bounds) are in form-round.ts and round-rules.ts.
 */
export interface TailRule {
  /** Whether cut tokens are kept, unless the policy has `onCut`. */
  readonly onCut: CutSemantics;
  /** Whether every taken group has a reserved place, besides the places of domains: the step waits for it. */
  reservesTaken(policy: TailPolicy): boolean;
  form(situation: Situation): Formation;
}

/** For policies with long rounds: these take groups in the order of the queue, whatever their domains. */
export const reservesWithQuotas = ({ domainQuotas }: TailPolicy): boolean => domainQuotas !== undefined;
