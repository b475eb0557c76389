import { type FixedPolicyName, type TailRule, reservesWithQuotas, type Formation, type Situation } from './tail-rule';

/** Plain synchronous rollout: launches the groups that it needs and waits for all of them. */
const wait: TailRule = {
  onCut: 'keep',
  reservesTaken: reservesWithQuotas,
  form: ({ needed, groupsPerStep, queued, urgent, remaining }) =>
    queued >= groupsPerStep || remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: urgent, launch: needed },
};

/** The long tail in separate steps: a long round as soon as the queue holds a whole step, else only new groups. */
function form({ needed, groupsPerStep, queued, urgent, remaining, launched }: Situation): Formation {
  if (queued >= groupsPerStep || remaining === 0) return { kind: 'long', take: needed, launch: needed };
  return { kind: 'short', take: urgent, launch: launched };
}

/** RollPacker: cut groups are generated again under the weights of their long round. On-policy, biased. */
const regenerate: TailRule = { onCut: 'discard', reservesTaken: reservesWithQuotas, form };

/**
 * Rounds as under {@link regenerate}, but nothing is thrown away: a cut group continues. Unbiased, some tokens
 * off-policy.
 */
const resume: TailRule = { onCut: 'keep', reservesTaken: reservesWithQuotas, form };

/** The unfinished first, a few in each round: steady batches (APRIL; with reserved places and q* TailSieve). */
const drip: TailRule = {
  onCut: 'keep',
  reservesTaken: ({ dripReserved, dripMode, domainQuotas }) =>
    dripReserved ?? (dripMode === 'adaptive' || domainQuotas !== undefined),
  form: ({ needed, urgent, remaining, launched, dripGroups }) =>
    remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: Math.max(urgent, dripGroups), launch: launched },
};

/** CoPRIS: a fixed number of requests in flight, refilled at once; the unfinished of earlier rounds go first. */
const fixedConcurrency: TailRule = {
  onCut: 'keep',
  // Taken groups may be more than a step needs: they compete with new groups, for places of their domains too.
  reservesTaken: () => false,
  form: ({ remaining, launched }) => ({ kind: remaining === 0 ? 'long' : 'short', take: launched, launch: launched }),
};

export const TAIL_RULES: Readonly<Record<FixedPolicyName, TailRule>> = {
  wait,
  regenerate,
  resume,
  drip,
  'fixed-concurrency': fixedConcurrency,
};
