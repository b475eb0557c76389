import { isBroomwagonError, type JobId } from '@broomwagon/contracts';
import { splitPages } from '../library/lists';
import type { PayloadStore } from '../payload';
import type { PoolLook } from './pool-look';

/** Payloads checked at the same time. */
const AT_ONCE = 32;

/**
 * Checks that the payload store has every payload to which requests, groups and snapshots of a job refer. Reads no
 * payload.
 * @param named references of snapshots, with the owner of each
 * @returns number of references checked
 */
export async function checkPayloads(
  look: PoolLook,
  payloads: PayloadStore,
  job: JobId,
  named: readonly [owner: string, ref: string][],
): Promise<number> {
  const refs = new Map(named.map(([owner, ref]) => [ref, owner]));
  for await (const [id, [promptRef]] of look.hashes(`group:${job}/`, 'promptRef')) {
    if (promptRef != null) refs.set(promptRef, `${job}/${id}`);
  }
  const fields = ['segments', 'savedSegment', 'savedPieces'];
  for await (const [id, [segments, saved, pieces]] of look.hashes(`request:${job}/`, ...fields)) {
    const made = JSON.parse(segments ?? '[]') as { ref: string }[];
    if (saved != null) made.push(JSON.parse(saved) as { ref: string });
    if (saved != null && pieces != null) {
      const numbers = Array.from({ length: Number(pieces.split(' ').at(-1)) }, (_, index) => index + 1);
      const texts = await look.fields(`request:${job}/${id}`, ...numbers.map((number) => `savedPiece:${number}`));
      for (const text of texts) if (text !== null) made.push(JSON.parse(text) as { ref: string });
    }
    for (const { ref } of made) refs.set(ref, `${job}/${id}`);
  }
  for (const page of splitPages([...refs], AT_ONCE)) {
    look.checkDeadline();
    await Promise.all(page.map(([ref, owner]) => checkPayload(look, payloads, ref, owner)));
  }
  return refs.size;
}

async function checkPayload(look: PoolLook, payloads: PayloadStore, ref: string, where: string): Promise<void> {
  try {
    await payloads.stat(ref);
  } catch (error) {
    if (!isBroomwagonError(error) || error.code === 'UNAVAILABLE') throw error;
    const check = error.code === 'PAYLOAD_NOT_FOUND' ? 'payload-missing' : 'payload-unreadable';
    look.note([{ check, where, detail: ref }]);
  }
}
