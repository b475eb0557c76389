/** Tokens to generate: the tokens of a sample of a prompt that come after `made`. */
export interface WantedTokens {
  prompt: number;
  sample: number;
  made: readonly number[];
}

/**
 * Mean shares of positions at which two responses hold the same token: the share of independent responses is chance.
 */
export interface EqualShares {
  /** Share between samples of different prompts. */
  prompts: number;
  /** Share between different samples of one prompt. */
  samples: number;
  /** Share between the beginning of a sample and the tokens generated when the sample is resumed behind it. */
  tails: number;
}

/**
 * Makes 4 x `pairs` pieces of samples, all at once, and compares `pairs` pairs of each kind; no two pairs of a kind
 * have a piece in common, so their shares are independent of each other.
 */
export async function equalShares(
  generate: (wanted: WantedTokens) => Promise<number[]>,
  pairs: number,
): Promise<EqualShares> {
  const head = (sample: number, count: number) =>
    Promise.all(Array.from({ length: count }, (_, prompt) => generate({ prompt, sample, made: [] })));
  const [first, second] = await Promise.all([head(0, 2 * pairs), head(1, pairs)]);
  const made = first.slice(0, pairs);
  const tails = await Promise.all(made.map((tokens, prompt) => generate({ prompt, sample: 0, made: tokens })));
  return {
    prompts: mean(made.map((tokens, index) => computeShare(tokens, first[pairs + index]!))),
    samples: mean(made.map((tokens, index) => computeShare(tokens, second[index]!))),
    tails: mean(made.map((tokens, index) => computeShare(tokens, tails[index]!))),
  };
}

/**
 * How far two means of `pairs` shares each may be apart when their expected values are the same, but for a probability
 * of `falseAlarm` (Hoeffding: it supposes nothing but that shares are between 0 and 1).
 */
export function marginOfShares(pairs: number, falseAlarm: number): number {
  return Math.sqrt(Math.log(2 / falseAlarm) / pairs);
}

function computeShare(one: readonly number[], other: readonly number[]): number {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).filter((token, index) => token === other[index]).length / length;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
