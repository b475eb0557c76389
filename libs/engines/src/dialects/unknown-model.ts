import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';

/**
 * Converts the error of a call whose model the caller has named: an engine without the model refuses the request.
 * Without the model of the registration, the server is at fault.
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
