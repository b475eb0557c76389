import type { AttemptId } from '@broomwagon/contracts';

/** Parses the number in the id of an attempt: the number of attempts of its request, with this attempt. */
export function attemptNumber(attempt: AttemptId): number {
  return Number(attempt.split('-', 1)[0]);
}
