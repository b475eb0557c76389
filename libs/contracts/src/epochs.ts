import { randomBytes } from 'node:crypto';
import type { AttemptId, Epoch } from './scalars';

const RANDOM_LENGTH = 12;

/** An epoch that was never given before: the time in milliseconds and 62 random bits, both in base 36. */
export function newEpoch(): Epoch {
  const random = (randomBytes(8).readBigUInt64BE() % 36n ** BigInt(RANDOM_LENGTH)).toString(36);
  return Date.now().toString(36) + random.padStart(RANDOM_LENGTH, '0');
}

/** The number in the id of an attempt: how many attempts its request had by then. */
export function attemptNumber(attempt: AttemptId): number {
  return Number(attempt.split('-', 1)[0]);
}
