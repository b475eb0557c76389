/** A published result, and the measure of the laboratory to compare with it. */
export interface Headline {
  id: string;
  /** Paper or project; hardware, model and cap stand beside every number. */
  source: string;
  setting: string;
  what: string;
  unit: 's' | 'x' | 'share' | 'count';
  /** Published number, or published range. */
  published: number | readonly [least: number, most: number];
  /** The headline holds if our mean differs by at most this share; a speed must also reach half of the gain. */
  tolerance: number;
  /** Name of the measure. */
  measure: string;
  /** Whether the result is of a run without a policy: parameters may be fitted to it. */
  isBaseline?: boolean;
  /** Reason why the headline does not hold, as far as it is known. */
  why?: string;
}

export interface HeadlineResult {
  headline: Headline;
  mean: number;
  least: number;
  most: number;
  /** Ours / published; of a range: against its nearer end, 1 within it. */
  ratio: number;
  holds: boolean;
}

/** Share of a published gain that ours must reach: no gain at all is only 11 % below a gain of 12 %. */
const MIN_GAIN = 0.5;

/** @param values one per seed */
export function evaluate(headline: Headline, values: readonly number[]): HeadlineResult {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const [low, high] =
    typeof headline.published === 'number' ? [headline.published, headline.published] : headline.published;
  const ratio = mean < low ? mean / low : mean > high ? mean / high : 1;
  return {
    headline,
    mean,
    least: Math.min(...values),
    most: Math.max(...values),
    ratio,
    holds: Math.abs(ratio - 1) <= headline.tolerance && (headline.unit !== 'x' || mean - 1 >= MIN_GAIN * (low - 1)),
  };
}
