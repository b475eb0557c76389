import { BroomwagonError, ERROR_CODES, LIMITS, type AcquireManyReply, type ServerId } from '@broomwagon/contracts';

type Item = AcquireManyReply['leases'][number];
type Server = AcquireManyReply['servers'][ServerId];

/** Maximum bytes of a reply besides its servers and leases. */
const ENVELOPE_BYTES = 64;

/**
 * A reply of `lb.acquire-many` that fits a message. An item without room is answered REPLY_FULL, with `granted` if it
 * has a lease.
 */
export class BurstReply {
  /** The reply. `servers` has no prototype, since a server may be called `__proto__`. */
  readonly body: AcquireManyReply = { servers: Object.create(null) as AcquireManyReply['servers'], leases: [] };
  /** Bytes still free in the message. Each unanswered item has the bytes of a REPLY_FULL reserved. */
  private roomBytes = LIMITS.bodyBytes - ENVELOPE_BYTES;

  /** @param acquireIds ids of all items, in their order */
  constructor(acquireIds: readonly string[]) {
    for (const acquireId of acquireIds) this.roomBytes -= countListBytes(withoutRoom(acquireId, false));
  }

  /** Adds the next item. @param server the server of a granted lease */
  add(item: Item, server?: Server): void {
    const isGranted = 'leaseId' in item;
    const full = withoutRoom(item.acquireId, isGranted);
    const names = isGranted && !Object.hasOwn(this.body.servers, item.serverId);
    const bytes =
      countListBytes(item) - countListBytes(full) + (names ? countListBytes({ [item.serverId]: server }) : 0);
    if (bytes > this.roomBytes) {
      this.body.leases.push(full);
      return;
    }
    this.roomBytes -= bytes;
    this.body.leases.push(item);
    if (names) this.body.servers[item.serverId] = server!;
  }
}

function withoutRoom(acquireId: string, granted: boolean): Item {
  const error = new BroomwagonError('REPLY_FULL', ERROR_CODES.REPLY_FULL.about, { details: { granted } });
  return { acquireId, error: error.toWire() };
}

/** Bytes of a value and a comma in a JSON list. */
function countListBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}
