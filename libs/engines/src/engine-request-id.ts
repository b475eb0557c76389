import type { AttemptId } from '@broomwagon/contracts';
import { createHash, randomUUID } from 'node:crypto';

/**
 * Id of one attempt inside an engine: 32 hex characters. All have one length, so none is a prefix of another
 * (SGLang aborts by prefix), and every attempt has its own (an engine may still hold the attempt before).
 */
export function engineRequestId(requestId: string, attempt: AttemptId): string {
  return createHash('sha256').update(`${requestId}#${attempt}`).digest('hex').slice(0, 32);
}

/** Id of an attempt that nothing else identifies, of the same length. */
export function randomEngineRequestId(): string {
  return randomUUID().replaceAll('-', '');
}
