import type { CutSemantics, RoundKind, TailPolicy, TailPolicyName } from '@broomwagon/contracts';

/** A policy that forms rounds itself. */
export type FixedPolicyName = Exclude<TailPolicyName, 'auto'>;
/** A policy with all that its rules need: never `auto`, which chooses one of these. */
export type FixedPolicy = TailPolicy & { name: FixedPolicyName; overProvision: number };

/** What a tail policy sees when it forms a round. All counts are groups. */
export interface Situation {
  /** What the round trains: min(groups per step, groups not trained). */
  needed: number;
  groupsPerStep: number;
  /** In the long-tail queue or on their way there. */
  queued: number;
  /** Of them those that cannot wait: finished, or pinned by a bound. At most `needed`. */
  urgent: number;
  /** Never submitted. */
  remaining: number;
  /** ceil(over-provision x needed), at most the remaining groups and what a round may have. */
  launched: number;
  /** What `drip` takes. */
  dripGroups: number;
}

export interface Formation {
  kind: RoundKind;
  /** Groups of the queue; bounds and the end of the data may change it. */
  take: number;
  /** Groups in all; the rest is new as long as there are new ones. */
  launch: number;
}

/**
 * A tail policy: how a round is formed and what becomes of its tail. One file each. What is the same for all (exact
 * steps, pins, reserved places, bounds) is not theirs: see plan-round.ts and round-rules.ts.
 */
export interface TailRule {
  /** What happens to tokens that are cut, unless the policy has `onCut`. */
  readonly onCut: CutSemantics;
  /** Whether every group that is taken has a reserved place, besides those of domains: the step waits for it. */
  reservesTaken(policy: TailPolicy): boolean;
  form(situation: Situation): Formation;
}

/** For policies with long rounds: these take groups in the order of the queue, whatever their domains. */
export const reservesWithQuotas = ({ domainQuotas }: TailPolicy): boolean => domainQuotas !== undefined;
