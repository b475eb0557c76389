import { Injectable } from '@nestjs/common';
import {
  newEpoch,
  type DeregisterWorkerReply,
  type DeregisterWorkerRequest,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type SyncWorkerReply,
  type SyncWorkerRequest,
  type WorkerHeartbeatReply,
  type WorkerId,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

/** One epoch of a worker. */
export type WorkerEpoch = DeregisterWorkerRequest;
export interface ExpiredWorkers {
  expired: WorkerId[];
  /** Why nothing expires now, if so: an alarm. */
  held?: 'outage' | 'mass';
  more: boolean;
}
type Cursor = Required<Pick<SyncWorkerReply, 'cursor'>>;

const TRANSITIONS = {
  register: transition<Required<RegisterWorkerRequest> & { newEpoch: string }, RegisterWorkerReply>('workers/register'),
  heartbeat: transition<WorkerEpoch, Omit<WorkerHeartbeatReply, 'leaseDigest'> & { leaseDigest: string }>(
    'workers/heartbeat',
  ),
  sync: transition<SyncWorkerRequest & Cursor, SyncWorkerReply & Cursor>('workers/sync'),
};

/** Worker epochs: while one is live, its leases and attempts are kept. */
@Injectable()
export class WorkerStore extends storeOf({
  deregister: transition<WorkerEpoch, DeregisterWorkerReply>('workers/deregister'),
  /** Expires at most 128 worker epochs; `gapMs` without a call counts as an outage, after which none expires. */
  expire: transition<{ gapMs: number }, ExpiredWorkers>('workers/expire'),
}) {
  register(pool: string, request: Required<RegisterWorkerRequest>): Promise<RegisterWorkerReply> {
    return this.runner.run(TRANSITIONS.register, pool, { ...request, newEpoch: newEpoch() });
  }

  /** @throws BroomwagonError FENCED, WORKER_NOT_FOUND */
  async heartbeat(pool: string, { workerId, workerEpoch }: WorkerEpoch): Promise<WorkerHeartbeatReply> {
    const raw = await this.runner.run(TRANSITIONS.heartbeat, pool, { workerId, workerEpoch });
    // The plain sum may be over 2^53; only the digest fits a JSON number.
    return { ...raw, leaseDigest: Number(BigInt.asUintN(40, BigInt(raw.leaseDigest))) };
  }

  /** One page of what the epoch holds. @throws BroomwagonError FENCED, WORKER_NOT_FOUND */
  async sync(pool: string, { cursor: from = '0', ...request }: SyncWorkerRequest): Promise<SyncWorkerReply> {
    const { items, cursor } = await this.runner.run(TRANSITIONS.sync, pool, { ...request, cursor: from });
    return { items, ...(cursor === '0' ? {} : { cursor }) };
  }
}
