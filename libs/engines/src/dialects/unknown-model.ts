import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';

/**
 * The error of a call whose model the caller has named: an engine that answers that it has no such model refuses the
 * request. A model that this server is registered with is another case: then the server is at fault.
 */
export function asUnknownModel(error: unknown): unknown {
  if (!isBroomwagonError(error, 'ENGINE_ERROR')) return error;
  const { status, said } = (error.details ?? {}) as { status?: number; said?: string };
  if (status !== 404 || !/\bmodel\b/i.test(said ?? '')) return error;
  return new BroomwagonError('ENGINE_REJECTED', error.message, {
    cause: error,
    field: 'model',
    details: error.details,
  });
}
