import { kaplanMeier, type Observed } from '../ledger/kaplan-meier';
import { binTokens } from '../ledger/length-bins';

/** Counts by bin (libs/policies/src/ledger/length-bins.ts) of the longest sample of each group, as kept in Redis. */
export interface GroupLengths {
  finished: Record<number, number>;
  /** Cut at this length and not finished since: it is longer than this. */
  censored: Record<number, number>;
}

/** All of them in one. */
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

/** The share of groups whose longest sample is longer than `tokens`. */
export interface TailShare {
  tokens: number;
  share: number;
}

/** The tail at every length at which a group finished, shortest first; cut groups count up to their cut. */
export function tailShares({ finished, censored }: GroupLengths): {
  shares: TailShare[];
  groups: number;
  censoredGroups: number;
  longest: number;
} {
  const bins = new Set([...Object.keys(finished), ...Object.keys(censored)].map(Number));
  const observed: Observed[] = [...bins].map((bin) => ({
    value: binTokens(bin),
    // A group that is put right leaves a zero behind.
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
