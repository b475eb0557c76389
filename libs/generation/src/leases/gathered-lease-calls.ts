import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  LIMITS,
  type AcquireRequest,
  type ErrorCode,
  type ReleaseItem,
} from '@broomwagon/contracts';
import { tracing } from '@broomwagon/messaging';
import { type Lease, LeaseCalls } from './lease-calls';

/** `lb.acquire-many` does not wait, so it refuses items that may wait, and items that do not fit into its reply. */
const WITHOUT_ROOM = new Set<ErrorCode>(['NO_SERVER_AVAILABLE', 'SERVERS_FULL', 'POOL_PAUSED', 'REPLY_FULL']);
/**
 * Refusals of a message, not of each of its calls: one call is invalid, the calls are too long together, or the user of
 * NATS may not send the message.
 */
const OF_MESSAGE = ['VALIDATION_FAILED', 'PAYLOAD_TOO_LARGE', 'FORBIDDEN'] as const;
/** How long acquires are sent singly after one found no room, milliseconds: they would be sent twice. */
const SINGLE_MS = 1_000;

interface Call<Request, Reply> {
  request: Request;
  /** Limit of a message that has only this call: timeout of an acquire, deadline of a release, milliseconds. */
  limitMs: number;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}
type Acquire = Call<AcquireRequest, Lease>;
type Release = Call<ReleaseItem, void>;

/**
 * Acquires and releases of one turn of the event loop are one message, if there are several: a message costs this
 * process more than anything else of a lease. Each call ends as if it had its own message.
 */
@Injectable()
export class GatheredLeaseCalls extends LeaseCalls {
  private readonly acquires = new Turn<Acquire>((calls) => void this.acquireMany(calls));
  private readonly releases = new Turn<Release>((calls) => void this.releaseMany(calls));
  private singleUntilMs = -Infinity;

  override acquire(request: AcquireRequest, limitMs: number, isRepeat: boolean): Promise<Lease> {
    // A message of several calls has one trace. A repeat must keep its place among the waiting acquires.
    if (tracing.isOn || isRepeat || performance.now() < this.singleUntilMs) {
      return super.acquire(request, limitMs, isRepeat);
    }
    return new Promise((resolve, reject) => this.acquires.add({ request, limitMs, resolve, reject }));
  }

  override release(request: ReleaseItem, limitMs: number): Promise<void> {
    if (tracing.isOn) return super.release(request, limitMs);
    return new Promise((resolve, reject) => this.releases.add({ request, limitMs, resolve, reject }));
  }

  private acquireSingly({ request, limitMs, resolve, reject }: Acquire): void {
    super.acquire(request, limitMs, false).then(resolve, reject);
  }

  /** Never throws. */
  private async acquireMany(calls: Acquire[]): Promise<void> {
    if (calls.length === 1) return this.acquireSingly(calls[0]!);
    // The epoch of this process may have changed within the turn.
    const { workerId, workerEpoch } = calls[0]!.request;
    const together = calls.filter(({ request }) => request.workerEpoch === workerEpoch);
    for (const call of calls) if (!together.includes(call)) this.acquireSingly(call);
    const acquires = together.map(
      ({ request: { workerId: _id, workerEpoch: _epoch, waitMs: _wait, ...item } }) => item,
    );
    try {
      const { servers, leases } = await this.controlPlane.call('lb.acquire-many', { workerId, workerEpoch, acquires });
      together.forEach((call, index) => {
        const item = leases[index]!;
        if ('leaseId' in item) {
          const { leaseId, serverId, dpRank } = item;
          return call.resolve({ leaseId, serverId, ...(dpRank !== undefined && { dpRank }), ...servers[serverId]! });
        }
        const error = BroomwagonError.fromWire(item.error);
        // A single acquire has the models of all engines read again first.
        if (error.code === 'MODEL_NOT_FOUND') return this.acquireSingly(call);
        if (!WITHOUT_ROOM.has(error.code)) return call.reject(error);
        this.singleUntilMs = performance.now() + SINGLE_MS;
        return this.acquireSingly(call);
      });
    } catch (error) {
      if (isOfMessage(error)) for (const call of together) this.acquireSingly(call);
      else for (const { reject } of together) reject(error);
    }
  }

  /** Never throws. */
  private async releaseMany(calls: Release[]): Promise<void> {
    const singly = ({ request, limitMs, resolve, reject }: Release): void => {
      super.release(request, limitMs).then(resolve, reject);
    };
    if (calls.length === 1) return singly(calls[0]!);
    const deadlineMs = Math.max(...calls.map(({ limitMs }) => limitMs));
    const releases = calls.map(({ request }) => request);
    try {
      await this.controlPlane.callWithRetry('lb.release-many', { releases }, { deadlineMs });
      for (const { resolve } of calls) resolve();
    } catch (error) {
      if (isOfMessage(error)) calls.forEach(singly);
      else for (const { reject } of calls) reject(error);
    }
  }
}

function isOfMessage(error: unknown): boolean {
  return OF_MESSAGE.some((code) => isBroomwagonError(error, code));
}

/** Collects the calls of one turn of the event loop. */
class Turn<Item> {
  private calls: Item[] = [];

  constructor(private readonly send: (calls: Item[]) => void) {}

  add(call: Item): void {
    if (this.calls.push(call) === 1) setImmediate(() => this.sendAll());
    if (this.calls.length === LIMITS.acquiresPerCall) this.sendAll();
  }

  private sendAll(): void {
    const { calls } = this;
    this.calls = [];
    if (calls.length > 0) this.send(calls);
  }
}
