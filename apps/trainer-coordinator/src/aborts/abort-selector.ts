import { BroomwagonError, type AbortRequestsRequest } from '@broomwagon/contracts';
import type { AbortSelector } from '@broomwagon/state';

const SELECTORS = ['requestIds', 'sessionId', 'groupId', 'workerId', 'serverId', 'roundId', 'all'] as const;

/** Those that mean single requests. */
const ALONE: ReadonlySet<string> = new Set(['requestIds', 'sessionId', 'workerId', 'serverId']);

/**
 * What a body means. @throws BroomwagonError VALIDATION_FAILED: no selector, two, one without its job, or an option of
 * another
 */
export function selectorOf(body: AbortRequestsRequest): AbortSelector {
  const [first, second] = SELECTORS.filter((name) => body[name] !== undefined);
  const { job, scope, refuseAcquiresMs } = body;
  if (second !== undefined) throw refusal(second, `${first} and ${second} are both given; an abort has one selector`);
  if (first === undefined) {
    if (job === undefined) throw refusal('requestIds', `one of ${SELECTORS.join(', ')} or job must be given`);
    if (scope === 'sample')
      throw refusal('scope', `job drops whole groups; scope sample is for ${[...ALONE].join(', ')}`);
    return { job };
  }
  const needsJob = first === 'groupId' || first === 'roundId';
  if (needsJob && job === undefined) throw refusal('job', `${first} needs the job it is of`);
  if (scope === 'sample' && !ALONE.has(first)) {
    throw refusal('scope', `${first} drops whole groups; scope sample is for ${[...ALONE].join(', ')}`);
  }
  if (refuseAcquiresMs !== undefined && first !== 'requestIds') {
    throw refusal('refuseAcquiresMs', 'refuseAcquiresMs is for requestIds only');
  }
  if (!needsJob && job !== undefined)
    throw refusal('job', `${first} and job are both given; an abort has one selector`);
  return {
    [first]: body[first],
    ...(needsJob && { job }),
    refuseAcquiresMs,
    ...(ALONE.has(first) && { scope }),
  } as AbortSelector;
}

function refusal(field: string, message: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', message, { field });
}
