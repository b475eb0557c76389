import type { AttemptId } from '@broomwagon/contracts';

/** The number in the id of an attempt: how many attempts its request had by then. */
export function attemptNumber(attempt: AttemptId): number {
  return Number(attempt.split('-', 1)[0]);
}
