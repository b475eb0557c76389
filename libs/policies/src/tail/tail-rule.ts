import type { CutSemantics, RoundKind, TailPolicy, TailPolicyName } from '@broomwagon/contracts';

/** Name of a policy that forms rounds. */
export type FixedPolicyName = Exclude<TailPolicyName, 'auto'>;
/** A policy that forms rounds, with its over-provision; never `auto`, which chooses such a policy. */
export type FixedPolicy = TailPolicy & { name: FixedPolicyName; overProvision: number };

/** Situation in which a tail policy forms a round. All counts are groups. */
export interface Situation {
  /** Groups that the round trains: min(groupsPerStep, untrained groups). */
  needed: number;
  groupsPerStep: number;
  /** Groups in the long-tail queue or on their way there. */
  queued: number;
  /** Queued groups that cannot wait: finished, or pinned by a bound. At most `needed`. */
  urgent: number;
  /** Groups never submitted. */
  remaining: number;
  /** Groups to launch: ceil(over-provision x needed), at most the untrained groups and the limit of a round. */
  launched: number;
  /** Groups that `drip` takes. */
  dripGroups: number;
}

export interface Formation {
  kind: RoundKind;
  /** Groups to take from the queue. Bounds and the end of the data may change this number. */
  take: number;
  /** Groups of the round. Beyond `take`, they are new groups, as long as there are new groups. */
  launch: number;
}

/**
 * Rule of a tail policy, which forms a round and treats its tail. tail-rules.ts has the rules of all policies.
 * form-round.ts and round-rules.ts have common rules (exact steps, pins, reserved places, bounds).
 */
export interface TailRule {
  /** Default of `onCut` of a policy: whether the tokens of cut samples are kept. */
  readonly onCut: CutSemantics;
  /**
   * Whether every taken group has a reserved place, in addition to the places of domains. The step waits for such
   * groups.
   */
  reservesTaken(policy: TailPolicy): boolean;
  form(situation: Situation): Formation;
}

/**
 * Reserves places if the policy has quotas, because long rounds take groups in the order of the queue, of any domain.
 */
export const reservesWithQuotas = ({ domainQuotas }: TailPolicy): boolean => domainQuotas !== undefined;
