import { randomBytes } from 'node:crypto';
import { applyDecorators } from '@nestjs/common';
import { IsString, Matches, MaxLength } from 'class-validator';
import type { AttemptId, Epoch } from './ids';

const RANDOM_LENGTH = 12;
const MAX_EPOCH_LENGTH = 32;

/** An epoch that was never given before: the time in milliseconds and 62 random bits, both in base 36. */
export function newEpoch(): Epoch {
  const random = (randomBytes(8).readBigUInt64BE() % 36n ** BigInt(RANDOM_LENGTH)).toString(36);
  return Date.now().toString(36) + random.padStart(RANDOM_LENGTH, '0');
}

/** The number in the id of an attempt: how many attempts its request had by then. */
export function attemptNumber(attempt: AttemptId): number {
  return Number(attempt.split('-', 1)[0]);
}

/** An {@link Epoch}, as a reply gave it. */
export function IsEpoch(): PropertyDecorator {
  const message = '$property must be an epoch as a reply gave it: lower-case letters and digits';
  return applyDecorators(IsString(), MaxLength(MAX_EPOCH_LENGTH), Matches(/^[0-9a-z]+$/, { message }));
}

/** An {@link AttemptId}, as a claim gave it. */
export function IsAttempt(): PropertyDecorator {
  const message = '$property must be the attempt of a claim: <number>-<letters and digits>';
  return applyDecorators(IsString(), MaxLength(2 * MAX_EPOCH_LENGTH), Matches(/^[0-9]+(-[0-9a-z]+)?$/, { message }));
}
