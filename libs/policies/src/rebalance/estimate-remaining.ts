/** What is known of the length of a sample, tokens. */
export interface LengthEvidence {
  madeTokens: number;
  /** Budget of the whole sample. */
  maxTokens: number;
  /** The longest finished sample of its group; 0 when there is none. */
  longestTokens: number;
}

/**
 * Tokens a sample is expected to make still. Siblings tell most of its length, so up to the longest of them that is the
 * guess; beyond it, as of any heavy tail, as many as it has made. Without a finished sibling its whole budget.
 */
export function estimateRemaining({ madeTokens, maxTokens, longestTokens }: LengthEvidence): number {
  const budgetLeft = Math.max(0, maxTokens - madeTokens);
  if (longestTokens === 0) return budgetLeft;
  const guess = madeTokens < longestTokens ? longestTokens - madeTokens : madeTokens;
  return Math.min(budgetLeft, guess);
}
