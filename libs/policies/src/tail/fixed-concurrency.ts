import type { TailRule } from './tail-rule';

/** CoPRIS: a fixed number of requests in flight, refilled at once; the unfinished of earlier rounds go first. */
export const fixedConcurrency: TailRule = {
  onCut: 'keep',
  // Taken groups may be more than a step needs: they compete with new groups, for places of their domains too.
  reservesTaken: () => false,
  form: ({ remaining, launched }) => ({ kind: remaining === 0 ? 'long' : 'short', take: launched, launch: launched }),
};
