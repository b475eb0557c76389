import type { ControlPlane } from '@broomwagon/generation';
import { boundSession } from '../core/bound-session';
import type { Caller } from '../keys/api-keys';
import { checkedSession } from './placement';

/**
 * Ends a session of the caller's key: the next request of the session may go to any server.
 * @param field name of the field that has the id
 * @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE
 */
export async function finishSession(
  controlPlane: ControlPlane,
  { tokenId }: Caller,
  id: unknown,
  field: string,
): Promise<{ sessionId: string; finished: boolean }> {
  const sessionId = checkedSession(id, field);
  const bound = { sessionId: boundSession(sessionId, tokenId) };
  const { finished } = await controlPlane.call('lb.finish-session', bound);
  return { sessionId, finished };
}
