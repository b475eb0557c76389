import { createHash } from 'node:crypto';

/** A sample, and the tokens that it has. */
export interface SeededSample {
  job: string;
  groupId: string;
  sampleIndex: number;
  /** Tokens of earlier attempts. */
  madeTokens: number;
}

/**
 * Sampling seed of one attempt, 0 to 2^31 - 1. An engine draws the same random numbers for every call with one seed, so
 * each sample, and each position at which a sample is resumed, gets a different seed. The same inputs give the same
 * seed in every release: the first four bytes, big-endian and without the highest bit, of the SHA-256 of
 * `<seed>\n<job>\n<groupId>\n<sampleIndex>\n<madeTokens>` in UTF-8.
 * @param seed seed in the group's sampling parameters, an integer
 */
export function sampleSeed(seed: number, { job, groupId, sampleIndex, madeTokens }: SeededSample): number {
  const text = [seed, job, groupId, sampleIndex, madeTokens].join('\n');
  return createHash('sha256').update(text).digest().readUInt32BE() >>> 1;
}
