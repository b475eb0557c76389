/** A round: the longest accepted sample, tokens, and how long it took. */
export interface RoundTime {
  longestTokens: number;
  durationMs: number;
}

const FEWEST_ROUNDS = 3;

/**
 * How long a round takes that waits for `tokens`: a + b x tokens, the best fit to the last rounds with neither below 0.
 * With too few rounds, or lengths all alike, the tokens themselves: only ratios of times matter.
 */
export function roundTime(rounds: readonly RoundTime[]): (tokens: number) => number {
  const plain = (tokens: number): number => tokens;
  if (rounds.length < FEWEST_ROUNDS) return plain;
  const mean = (of: (round: RoundTime) => number): number =>
    rounds.reduce((sum, round) => sum + of(round), 0) / rounds.length;
  const meanTokens = mean((round) => round.longestTokens);
  const meanMs = mean((round) => round.durationMs);
  const variance = mean((round) => (round.longestTokens - meanTokens) ** 2);
  if (variance === 0 || meanMs === 0) return plain;
  const covariance = mean((round) => (round.longestTokens - meanTokens) * (round.durationMs - meanMs));
  const slope = covariance / variance;
  if (slope <= 0) return plain;
  const fixed = meanMs - slope * meanTokens;
  return fixed > 0 ? (tokens) => fixed + slope * tokens : plain;
}
