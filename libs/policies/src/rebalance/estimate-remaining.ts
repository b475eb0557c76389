/** Known lengths for the estimate of one sample, tokens. */
export interface LengthEvidence {
  madeTokens: number;
  /** Budget of the whole sample. */
  maxTokens: number;
  /** Length of the longest finished sample of the group; 0 if none has finished. */
  longestTokens: number;
  /** Expected length of the longest sample of the group, from the prompt memory; 0 for an unknown prompt. */
  rememberedTokens: number;
  /** Length so far of the longest unfinished sample of the group; at least `madeTokens`. */
  unfinishedTokens: number;
}

/** Minimum remaining tokens of a sample that is longer than all known lengths. */
const MIN_REMAINING = 256;

/**
 * Estimates the tokens that a sample still has to generate. The sample is expected to become as long as the longest
 * finished or remembered sample of the prompt, because the prompt explains most of the length. Beyond this length, the
 * sample is expected to reach twice the length of the longest unfinished sample, as in a heavy-tailed distribution.
 */
export function estimateRemaining(evidence: LengthEvidence): number {
  const { madeTokens, maxTokens, longestTokens, rememberedTokens } = evidence;
  const known = Math.max(longestTokens, rememberedTokens);
  const unfinished = Math.max(madeTokens, evidence.unfinishedTokens);
  const expected = unfinished < known ? known : unfinished + Math.max(unfinished, MIN_REMAINING);
  return Math.max(0, Math.min(maxTokens, expected) - madeTokens);
}
