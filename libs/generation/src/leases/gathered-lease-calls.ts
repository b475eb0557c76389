import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  LIMITS,
  type ErrorCode,
  type ReleaseItem,
  type ReleaseReply,
} from '@broomwagon/contracts';
import { Gatherer } from '@broomwagon/engines';
import { tracing } from '@broomwagon/messaging';
import { type AcquireLimits, type Lease, LeaseCalls, type LeaseItem } from './lease-calls';
import type { WorkerEpoch } from './leased-call';

/**
 * Refusals of items that may wait, because `lb.acquire-many` does not wait, and of items that do not fit into its
 * reply.
 */
const WITHOUT_ROOM = new Set<ErrorCode>(['NO_SERVER_AVAILABLE', 'SERVERS_FULL', 'POOL_PAUSED', 'REPLY_FULL']);
/**
 * Refusals of a message, not of each of its calls: one call is invalid, the calls are too long together, or the user of
 * NATS may not send the message.
 */
const OF_MESSAGE = ['VALIDATION_FAILED', 'PAYLOAD_TOO_LARGE', 'FORBIDDEN'] as const;
/**
 * Time for which acquires are sent singly after one has found no room, milliseconds: a common message would only be
 * refused again.
 */
const SINGLE_MS = 1_000;

interface Call<Item, Reply> {
  item: Item;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}
interface Acquire extends Call<LeaseItem, Lease> {
  worker: WorkerEpoch;
  /** Limits of a message that has only this acquire. */
  limits: AcquireLimits;
}
interface Release extends Call<ReleaseItem, ReleaseReply> {
  deadlineMs: number;
}

/**
 * Sends the acquires of one turn of the event loop as one message, and its releases too: a message costs this process
 * more than anything else of a lease. Each call ends as if it had its own message.
 */
@Injectable()
export class GatheredLeaseCalls extends LeaseCalls {
  private readonly acquires = new Gatherer<Acquire>(LIMITS.acquiresPerCall, (calls) => void this.acquireMany(calls));
  private readonly releases = new Gatherer<Release>(LIMITS.acquiresPerCall, (calls) => void this.releaseMany(calls));
  private singleUntilMs = -Infinity;

  override acquire(worker: WorkerEpoch, item: LeaseItem, limits: AcquireLimits): Promise<Lease> {
    // A message of several calls has one trace. A repeat must keep its place among the waiting acquires.
    if (tracing.isOn || limits.isRepeat || performance.now() < this.singleUntilMs) {
      return super.acquire(worker, item, limits);
    }
    return new Promise((resolve, reject) => this.acquires.add({ worker, item, limits, resolve, reject }));
  }

  override release(item: ReleaseItem, deadlineMs: number): Promise<ReleaseReply> {
    if (tracing.isOn) return super.release(item, deadlineMs);
    return new Promise((resolve, reject) => this.releases.add({ item, deadlineMs, resolve, reject }));
  }

  private acquireSingly({ worker, item, limits, resolve, reject }: Acquire): void {
    super.acquire(worker, item, limits).then(resolve, reject);
  }

  /** Sends acquires together, and settles each of them: the method never throws. */
  private async acquireMany(calls: Acquire[]): Promise<void> {
    if (calls.length === 1) return this.acquireSingly(calls[0]!);
    // The epoch of this process may have changed within the turn.
    const { workerId, workerEpoch } = calls[0]!.worker;
    const together = calls.filter(({ worker }) => worker.workerEpoch === workerEpoch);
    for (const call of calls) if (call.worker.workerEpoch !== workerEpoch) this.acquireSingly(call);
    const acquires = together.map(({ item }) => item);
    try {
      const { servers, leases } = await this.controlPlane.call('lb.acquire-many', { workerId, workerEpoch, acquires });
      together.forEach((call, index) => {
        const item = leases[index]!;
        if ('leaseId' in item) {
          const { leaseId, serverId, dpRank } = item;
          return call.resolve({ leaseId, serverId, dpRank, ...servers[serverId]! });
        }
        const error = BroomwagonError.fromWire(item.error);
        // A single acquire makes the load-balancer read the models of all engines again.
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

  /** Sends releases together, and settles each of them: the method never throws. */
  private async releaseMany(calls: Release[]): Promise<void> {
    const singly = ({ item, deadlineMs, resolve, reject }: Release): void => {
      super.release(item, deadlineMs).then(resolve, reject);
    };
    if (calls.length === 1) return singly(calls[0]!);
    const deadlineMs = Math.max(...calls.map((call) => call.deadlineMs));
    const releases = calls.map(({ item }) => item);
    try {
      const { results } = await this.controlPlane.callWithRetry('lb.release-many', { releases }, { deadlineMs });
      calls.forEach(({ resolve }, index) => resolve(results[index]!));
    } catch (error) {
      if (isOfMessage(error)) calls.forEach(singly);
      else for (const { reject } of calls) reject(error);
    }
  }
}

function isOfMessage(error: unknown): boolean {
  return OF_MESSAGE.some((code) => isBroomwagonError(error, code));
}
