import { randomBytes } from 'node:crypto';
import type { Epoch } from './scalars';

const RANDOM_LENGTH = 12;

/** An epoch that was never given before: the time in milliseconds and 62 random bits, both in base 36. */
export function newEpoch(): Epoch {
  const random = (randomBytes(8).readBigUInt64BE() % 36n ** BigInt(RANDOM_LENGTH)).toString(36);
  return Date.now().toString(36) + random.padStart(RANDOM_LENGTH, '0');
}
