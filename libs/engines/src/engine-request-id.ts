import type { AttemptId } from '@broomwagon/contracts';
import { createHash, randomUUID } from 'node:crypto';

/**
 * Id of one attempt inside an engine: 32 hex characters. All ids have one length, so no id is a prefix of another
 * (SGLang aborts by prefix). Every attempt has its own id (an engine may still hold the attempt before).
 */
export function engineRequestId(requestId: string, attempt: AttemptId): string {
  return createHash('sha256').update(`${requestId}#${attempt}`).digest('hex').slice(0, 32);
}

/** Random id of the same length, for a call that is no attempt. */
export function randomEngineRequestId(): string {
  return randomUUID().replaceAll('-', '');
}
