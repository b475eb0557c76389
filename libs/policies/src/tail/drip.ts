import type { TailRule } from './tail-rule';

/** The unfinished first, a few in each round: steady batches (APRIL; with reserved places and q* TailSieve). */
export const drip: TailRule = {
  onCut: 'keep',
  reservesTaken: ({ dripReserved, dripMode, domainQuotas }) =>
    dripReserved ?? (dripMode === 'adaptive' || domainQuotas !== undefined),
  form: ({ needed, urgent, remaining, launched, dripGroups }) =>
    remaining === 0
      ? { kind: 'long', take: needed, launch: needed }
      : { kind: 'short', take: Math.max(urgent, dripGroups), launch: launched },
};
