/** Lengths are counted in bins of equal ratio, 2^(1/8): about 9 % wide, however long they are. */
const BINS_PER_DOUBLING = 8;
// A power of two falls into its own bin whatever the logarithm's last bit is.
const ROUNDING = 1e-9;

/** The bin of a length in tokens; 0 for one token or none. */
export function lengthBin(tokens: number): number {
  return Math.floor((Math.log(Math.max(1, tokens)) / Math.log(2)) * BINS_PER_DOUBLING + ROUNDING);
}

/** The longest length of a bin, tokens. */
export function binTokens(bin: number): number {
  return 2 ** ((bin + 1) / BINS_PER_DOUBLING);
}

/** Counts by bin, of the longest sample of each group. Plain data, as it is kept in Redis. */
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

/** P(length > tokens) at the end of each bin in which something finished, longest last. */
export interface SurvivalStep {
  tokens: number;
  share: number;
}

/** The survival function by Kaplan and Meier: a group that was cut counts as one at risk up to where it was cut. */
export function survival({ finished, censored }: GroupLengths): {
  steps: SurvivalStep[];
  groups: number;
  censoredGroups: number;
  longest: number;
} {
  const bins = [...new Set([...Object.keys(finished), ...Object.keys(censored)].map(Number))].sort((a, b) => a - b);
  const count = (of: Record<number, number>, bin: number): number => Math.max(0, of[bin] ?? 0);
  const groups = bins.reduce((sum, bin) => sum + count(finished, bin) + count(censored, bin), 0);
  const censoredGroups = bins.reduce((sum, bin) => sum + count(censored, bin), 0);
  const steps: SurvivalStep[] = [];
  let atRisk = groups;
  let share = 1;
  let longest = 0;
  for (const bin of bins) {
    const ended = count(finished, bin);
    if (ended + count(censored, bin) > 0) longest = binTokens(bin);
    if (ended > 0) {
      share *= 1 - ended / atRisk;
      steps.push({ tokens: binTokens(bin), share });
    }
    // Those cut within a bin are taken to have outlived those that ended in it.
    atRisk -= ended + count(censored, bin);
  }
  return { steps, groups, censoredGroups, longest };
}
