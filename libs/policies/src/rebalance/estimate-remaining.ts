/** Evidence of the length of a sample, tokens. */
export interface LengthEvidence {
  madeTokens: number;
  /** Budget of the whole sample. */
  maxTokens: number;
  /** The longest finished sample of its group; 0 when there is none. */
  longestTokens: number;
  /** Expected length of the longest sample of its group, from the prompt memory; 0 for a prompt that was never seen. */
  rememberedTokens: number;
  /** The longest unfinished sample of its group, so far; at least `madeTokens`. */
  unfinishedTokens: number;
}

/** Fewest tokens that a sample is expected to have left when it is longer than all known lengths. */
const LEAST_REMAINING = 256;

/**
 * Estimates the tokens that a sample still has to generate. Siblings and earlier samples of its prompt explain most of
 * its length, so it is expected to become as long as the longest of them. Once it or an unfinished sibling has become
 * longer, it is expected to reach twice that length, as under any heavy tail.
 */
export function estimateRemaining(evidence: LengthEvidence): number {
  const { madeTokens, maxTokens, longestTokens, rememberedTokens } = evidence;
  const known = Math.max(longestTokens, rememberedTokens);
  const unfinished = Math.max(madeTokens, evidence.unfinishedTokens);
  const expected = unfinished < known ? known : unfinished + Math.max(unfinished, LEAST_REMAINING);
  return Math.max(0, Math.min(maxTokens, expected) - madeTokens);
}
