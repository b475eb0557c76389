import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { isContextTooLong } from '@broomwagon/engines';
import type { Generated } from '@broomwagon/generation';
import { asOurs } from './continuation';
import type { Generation } from './generation';
import type { GenerationEnd } from './response-parts';

const RETRY_AFTER_MS = 1_000;

/** The end of a generation that the engine has aborted by itself. */
export function toAbortEnd({ result }: Generated): GenerationEnd {
  return { reason: 'abort', message: String(result?.stopReason ?? 'Aborted on the engine') };
}

/**
 * End of a generation that engines have aborted too often, although its client asked to continue after aborts. Without
 * a token the client gets an error and may repeat the request: an empty response would be no sample.
 */
export function endOfAborts({ tokens, calls }: Generation, abort: GenerationEnd): GenerationEnd {
  if (tokens.count > 0) return abort;
  const message = `Engines aborted the request in each of ${calls.attempts} calls before a token was kept`;
  return { reason: 'error', error: new BroomwagonError('ENGINE_ERROR', message) };
}

/** The end of a generation that was stopped. */
export function stopped({ stoppedBy, isLost }: Generation): GenerationEnd {
  if (stoppedBy === 'abort') return { reason: 'abort', message: 'Aborted by the client' };
  if (isLost) {
    const error = new BroomwagonError('REQUEST_IN_PROGRESS', 'Another replica continues this request');
    return { reason: 'error', error };
  }
  const message = 'The gateway is shutting down; send the request again';
  return { reason: 'error', error: new BroomwagonError('SHUTTING_DOWN', message) };
}

/** The end if no lease was granted; undefined: the generation acquires again under the next epoch. */
export function endOfRefusal(generation: Generation, error: Error | undefined): GenerationEnd | undefined {
  if (generation.stoppedBy !== undefined) return stopped(generation);
  const isEpoch = ['FENCED', 'WORKER_NOT_FOUND', 'RELEASED'] as const;
  if (error === undefined || isEpoch.some((code) => isBroomwagonError(error, code))) return undefined;
  if (isBroomwagonError(error, 'ABORTED')) return { reason: 'abort', message: 'Aborted before a server was granted' };
  return { reason: 'error', error: afterWait(error) };
}

/**
 * Turns the error of the last acquire into an error that a client may retry: the deadline of the whole wait has passed.
 */
function afterWait(error: Error): BroomwagonError {
  const { message, details } = error as BroomwagonError;
  const options = { retryAfterMs: RETRY_AFTER_MS, details };
  if (isBroomwagonError(error, 'WAIT_TIMEOUT')) return new BroomwagonError('SERVERS_FULL', message, options);
  if (isBroomwagonError(error, 'TIMEOUT')) return new BroomwagonError('UNAVAILABLE', message, options);
  return asOurs(error);
}

/** Gives a refusal of the engine its own code, if clients handle such refusals separately. */
export function toRefusal(error: BroomwagonError): BroomwagonError {
  const { field, message } = error;
  if (field === 'model') return new BroomwagonError('MODEL_NOT_FOUND', message, { field });
  return isContextTooLong(message) ? new BroomwagonError('CONTEXT_TOO_LONG', message) : error;
}
