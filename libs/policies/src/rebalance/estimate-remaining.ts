/** What is known of the length of a sample, tokens. */
export interface LengthEvidence {
  madeTokens: number;
  /** Budget of the whole sample. */
  maxTokens: number;
  /** The longest finished sample of its group; 0 when there is none. */
  longestTokens: number;
  /** What the prompt memory expects of the longest sample of its group; 0 for a prompt that was never seen. */
  rememberedTokens: number;
  /** The longest unfinished sample of its group, so far; at least `madeTokens`. */
  unfinishedTokens: number;
}

/** A sample that is longer than all that is known is expected to make at least so many more, tokens. */
const LEAST_REMAINING = 256;

/**
 * Tokens a sample is expected to make still. Siblings and earlier samples of its prompt tell most of its length, so the
 * guess is the longest of them, up to there. A sample beyond that is expected to make as many as it has made, as of any
 * heavy tail, and its siblings may become as long.
 */
export function estimateRemaining(evidence: LengthEvidence): number {
  const { madeTokens, maxTokens, longestTokens, rememberedTokens } = evidence;
  const known = Math.max(longestTokens, rememberedTokens);
  const unfinished = Math.max(madeTokens, evidence.unfinishedTokens);
  const expected = unfinished < known ? known : unfinished + Math.max(unfinished, LEAST_REMAINING);
  return Math.max(0, Math.min(maxTokens, expected) - madeTokens);
}
