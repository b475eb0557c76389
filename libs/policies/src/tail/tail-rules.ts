import { type FixedPolicyName, type TailRule, reservesWithQuotas, type Formation, type Situation } from './tail-rule';

/** Plain synchronous rollout: the round launches only needed groups, and waits for all of them. */
const wait: TailRule = {
  onCut: 'keep',
  reservesTaken: reservesWithQuotas,
  form: ({ needed, groupsPerStep, queued, urgent, remaining }) =>
    queued >= groupsPerStep || remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: urgent, launch: needed },
};

/** Forms a long round as soon as the queue holds a whole step, otherwise a short round of new and urgent groups. */
function form({ needed, groupsPerStep, queued, urgent, remaining, launched }: Situation): Formation {
  if (queued >= groupsPerStep || remaining === 0) return { kind: 'long', take: needed, launch: needed };
  return { kind: 'short', take: urgent, launch: launched };
}

/**
 * RollPacker: cut groups are generated again with the weights of their long round. Tokens are on-policy, lengths are
 * biased.
 */
const regenerate: TailRule = { onCut: 'discard', reservesTaken: reservesWithQuotas, form };

/**
 * Rounds as under {@link regenerate}, and cut groups continue with their tokens. Lengths are unbiased, some tokens are
 * off-policy.
 */
const resume: TailRule = { onCut: 'keep', reservesTaken: reservesWithQuotas, form };

/**
 * APRIL: each round takes a few groups of the queue first, so batches are steady. TailSieve: also with reserved places
 * and an adaptive number.
 */
const drip: TailRule = {
  onCut: 'keep',
  reservesTaken: ({ dripReserved, dripMode, domainQuotas }) =>
    dripReserved ?? (dripMode === 'adaptive' || domainQuotas !== undefined),
  form: ({ needed, urgent, remaining, launched, dripGroups }) =>
    remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: Math.max(urgent, dripGroups), launch: launched },
};

/** CoPRIS: a fixed number of requests is in flight, and groups of the queue go first. */
const fixedConcurrency: TailRule = {
  onCut: 'keep',
  // More groups may be taken than a step needs, so taken groups compete with new groups, also for places of their
  // domains.
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
