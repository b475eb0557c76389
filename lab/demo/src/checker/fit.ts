/** Tokens that are compared around a join: the effect of a lost or repeated token is largest there. */
export const WINDOW = 16;
/** Tokens before the join among these: a repeated token may count as the last one before it. */
export const BEFORE = 2;
/** Smallest limit, nats: windows elsewhere can be equal to the last bit. */
const MIN_LIMIT = 0.1;
/** Share of the windows elsewhere below half of the limit. */
const QUANTILE = 0.999;
/** Largest difference of one token that counts, nats: one impossible token must not hide all others in a mean. */
const LARGEST = 20;

/** Absolute differences of consecutive tokens of one weight version, recorded against scored log probabilities. */
export type Differences = readonly number[];

/** Difference of one token, nats. */
export function difference(recorded: number, scored: number): number {
  return Math.min(LARGEST, Math.abs(recorded - scored));
}

/** Mean; 0 for an empty list. */
export function mean(numbers: Differences): number {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

/**
 * Noise of an engine: differences of tokens that no join precedes, so that nothing before them can be lost or repeated.
 * Kernels, batches and numbers of few bits make them differ from zero.
 */
export class Noise {
  private readonly limits = new Map<number, number>();
  readonly mean: number;
  readonly tokens: number;

  constructor(private readonly stretches: readonly Differences[]) {
    const all = stretches.flat();
    this.mean = mean(all);
    this.tokens = all.length;
  }

  /**
   * Largest mean difference of so many consecutive tokens that still fits: twice the mean that 99.9 % of the stretches of
   * this length without a join have at most.
   */
  limit(count: number): number {
    const known = this.limits.get(count);
    if (known !== undefined) return known;
    const means = this.stretches.flatMap((stretch) =>
      Array.from({ length: Math.floor(stretch.length / count) }, (_, index) =>
        mean(stretch.slice(index * count, (index + 1) * count)),
      ),
    );
    means.sort((one, other) => one - other);
    const most = means[Math.ceil(QUANTILE * means.length) - 1] ?? 0;
    const limit = Math.max(MIN_LIMIT, 2 * most);
    this.limits.set(count, limit);
    return limit;
  }
}
