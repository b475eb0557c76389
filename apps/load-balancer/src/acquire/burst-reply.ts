import { BroomwagonError, ERROR_CODES, LIMITS, type AcquireManyReply, type ServerId } from '@broomwagon/contracts';

type Item = AcquireManyReply['leases'][number];
type Server = AcquireManyReply['servers'][ServerId];

/** The names of the two fields of the reply. */
const ENVELOPE_BYTES = 64;

/**
 * A reply of `lb.acquire-many` that fits a message: what finds no room in it is answered REPLY_FULL, and told whether
 * its lease was granted all the same.
 */
export class BurstReply {
  /** A server may be called `__proto__`. */
  readonly body: AcquireManyReply = { servers: Object.create(null) as AcquireManyReply['servers'], leases: [] };
  /** What is left when each item to come is answered REPLY_FULL. */
  private roomBytes = LIMITS.bodyBytes - ENVELOPE_BYTES;

  /** @param acquireIds of all items, in their order */
  constructor(acquireIds: readonly string[]) {
    for (const acquireId of acquireIds) this.roomBytes -= bytesOf(withoutRoom(acquireId, false));
  }

  /** The next item. @param server of a lease */
  add(item: Item, server?: Server): void {
    const isGranted = 'leaseId' in item;
    const full = withoutRoom(item.acquireId, isGranted);
    const names = isGranted && !Object.hasOwn(this.body.servers, item.serverId);
    const bytes = bytesOf(item) - bytesOf(full) + (names ? bytesOf({ [item.serverId]: server }) : 0);
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

/** In a list of JSON. */
function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}
