/** Median of the values: of an even number of values, the mean of the middle two. NaN when there are none. */
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

/** Percentiles of a set of latencies, milliseconds. */
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
 * Median over rounds of the ratio within a round. A machine that is slow for a while is slow for both values of a
 * round, so this median varies far less than the ratio of two medians.
 */
export function medianRatio(numerators: readonly number[], denominators: readonly number[]): number {
  return median(numerators.map((value, round) => value / denominators[round]!));
}

/** Rounds to so many significant digits, for a report. */
export function significant(value: number, digits = 4): number {
  return Number(value.toPrecision(digits));
}
