import { kaplanMeier, type Observed } from '../ledger/kaplan-meier';
import { binTokens } from '../ledger/length-bins';

/**
 * Counts of groups by the bin of their longest sample (libs/policies/src/ledger/length-bins.ts), as stored in Redis.
 */
export interface GroupLengths {
  finished: Record<number, number>;
  /** Groups that were cut at this length and have not finished since, so they are longer. */
  censored: Record<number, number>;
}

/** Adds the counts of all parts. */
export function mergeLengths(parts: readonly GroupLengths[]): GroupLengths {
  const merged: GroupLengths = { finished: {}, censored: {} };
  for (const part of parts) {
    for (const kind of ['finished', 'censored'] as const) {
      for (const [bin, count] of Object.entries(part[kind])) {
        merged[kind][Number(bin)] = (merged[kind][Number(bin)] ?? 0) + count;
      }
    }
  }
  return merged;
}

/** Share of groups with a sample of more than `tokens` tokens. */
export interface TailShare {
  tokens: number;
  share: number;
}

/**
 * Returns the tail share at every length at which a group finished, shortest first. Cut groups count up to their cut.
 */
export function tailShares({ finished, censored }: GroupLengths): {
  shares: TailShare[];
  groups: number;
  censoredGroups: number;
  longest: number;
} {
  const bins = new Set([...Object.keys(finished), ...Object.keys(censored)].map(Number));
  const observed: Observed[] = [...bins].map((bin) => ({
    value: binTokens(bin),
    // A correction of a group may leave a count of 0 or below.
    ended: Math.max(0, finished[bin] ?? 0),
    censored: Math.max(0, censored[bin] ?? 0),
  }));
  const { steps, count } = kaplanMeier(observed);
  return {
    shares: steps.map(({ value, survival }) => ({ tokens: value, share: survival })),
    groups: count,
    censoredGroups: observed.reduce((sum, one) => sum + one.censored, 0),
    longest: Math.max(0, ...observed.filter((one) => one.ended + one.censored > 0).map(({ value }) => value)),
  };
}
