/** The middle of the values; the mean of the two in the middle of an even number. NaN when there are none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * The smallest value that at least `share` (0 to 1) of all values do not exceed. NaN when there are none.
 * @param sorted ascending
 */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

/** What is told of a set of latencies, milliseconds. */
export interface LatencySummary {
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
}

export function summarizeLatencies(valuesMs: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(valuesMs).sort();
  return { p50Ms: percentile(sorted, 0.5), p95Ms: percentile(sorted, 0.95), p99Ms: percentile(sorted, 0.99) };
}

/**
 * How many times the second the first is: the median over rounds of the ratio within a round. A machine that is slow
 * for a while is slow for both of a round, so this moves far less than the ratio of two medians.
 */
export function medianRatio(numerators: readonly number[], denominators: readonly number[]): number {
  return median(numerators.map((value, round) => value / denominators[round]!));
}

/** Rounded to so many significant digits, for a report. */
export function significant(value: number, digits = 4): number {
  return Number(value.toPrecision(digits));
}
