/** Longest accepted sample of a round, and duration of the round. */
export interface RoundTime {
  longestTokens: number;
  durationMs: number;
}

const FEWEST_ROUNDS = 3;

/**
 * Fits the time of a round that waits for a sample of `tokens` to the last rounds: a + b x tokens, without negative
 * factors. Without enough rounds or a fit, the time is `tokens`, because only ratios of times matter.
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
