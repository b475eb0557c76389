import { invalidField, type AbortRequestsRequest } from '@broomwagon/contracts';
import type { AbortSelector } from '@broomwagon/state';

const SELECTORS = ['requestIds', 'sessionId', 'groupId', 'workerId', 'serverId', 'roundId', 'all'] as const;

/** Selectors that may abort single samples (`scope: 'sample'`). The other selectors drop whole groups. */
const ALONE: ReadonlySet<string> = new Set(['requestIds', 'sessionId', 'workerId', 'serverId']);

/**
 * Reads the selector of an abort.
 * @throws BroomwagonError VALIDATION_FAILED: no selector, two selectors, a group or round without its job, or an option
 *   of another selector
 */
export function parseSelector(body: AbortRequestsRequest): AbortSelector {
  const [first, second] = SELECTORS.filter((name) => body[name] !== undefined);
  const { job, scope, refuseAcquiresMs } = body;
  if (second !== undefined)
    throw invalidField(second, `${first} and ${second} are both given; an abort has one selector`);
  if (first === undefined) {
    if (job === undefined) throw invalidField('requestIds', `one of ${SELECTORS.join(', ')} or job must be given`);
    if (scope === 'sample')
      throw invalidField('scope', `job drops whole groups; scope sample is for ${[...ALONE].join(', ')}`);
    return { job };
  }
  const needsJob = first === 'groupId' || first === 'roundId';
  if (needsJob && job === undefined) throw invalidField('job', `${first} needs the job it is of`);
  if (scope === 'sample' && !ALONE.has(first)) {
    throw invalidField('scope', `${first} drops whole groups; scope sample is for ${[...ALONE].join(', ')}`);
  }
  if (refuseAcquiresMs !== undefined && first !== 'requestIds') {
    throw invalidField('refuseAcquiresMs', 'is for requestIds only');
  }
  if (!needsJob && job !== undefined)
    throw invalidField('job', `${first} and job are both given; an abort has one selector`);
  return {
    [first]: body[first],
    ...(needsJob && { job }),
    refuseAcquiresMs,
    ...(ALONE.has(first) && { scope }),
  } as AbortSelector;
}
