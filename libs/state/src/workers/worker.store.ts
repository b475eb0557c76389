import { Injectable } from '@nestjs/common';
import {
  type DeregisterWorkerReply,
  type DeregisterWorkerRequest,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type ServerSigns,
  type SyncWorkerReply,
  type SyncWorkerRequest,
  type WorkerHeartbeatReply,
  type WorkerId,
} from '@broomwagon/contracts';
import { transition, type NewEpoch } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

export type WorkerEpoch = DeregisterWorkerRequest;
export interface ExpiredWorkers {
  expired: WorkerId[];
  /** Why no epoch expires now, for an alarm; absent when epochs expire. */
  held?: 'outage' | 'mass';
  more: boolean;
}
/** Limits of the silence after which a server counts as hung. */
export interface SilenceLimits {
  /** Time without a token, milliseconds; 0: never. */
  silentAfterMs: number;
  /** Tokens of a prompt that explain one second of silence. */
  prefillTokensPerSecond: number;
}
export type SeenServers = SilenceLimits & { servers: ServerSigns[] };
const heartbeat = transition<
  WorkerEpoch & SeenServers,
  Omit<WorkerHeartbeatReply, 'leaseDigest'> & { leaseDigest: string }
>('workers/heartbeat');

const NOTHING_SEEN: SeenServers = { servers: [], silentAfterMs: 0, prefillTokensPerSecond: 1 };

/** Worker epochs. While an epoch is live, its leases and attempts are kept. */
@Injectable()
export class WorkerStore extends createStoreClass({
  register: transition<Required<RegisterWorkerRequest> & NewEpoch, RegisterWorkerReply>('workers/register', {
    hasNewEpoch: true,
  }),
  /** One page of the leases or attempts of a worker epoch. */
  sync: transition<SyncWorkerRequest, SyncWorkerReply>('workers/sync'),
  deregister: transition<WorkerEpoch, DeregisterWorkerReply>('workers/deregister'),
  /**
   * Expires at most 128 worker epochs; `gapMs` without a call counts as an outage, after which no epoch expires for a
   * while.
   */
  expire: transition<{ gapMs: number }, ExpiredWorkers>('workers/expire'),
}) {
  /** @throws BroomwagonError FENCED, WORKER_NOT_FOUND */
  async heartbeat(
    pool: string,
    { workerId, workerEpoch }: WorkerEpoch,
    seen: SeenServers = NOTHING_SEEN,
  ): Promise<WorkerHeartbeatReply> {
    const raw = await this.runner.run(heartbeat, pool, { workerId, workerEpoch, ...seen });
    // The plain sum may be over 2^53; only the digest fits a JSON number.
    return { ...raw, leaseDigest: Number(BigInt.asUintN(40, BigInt(raw.leaseDigest))) };
  }
}
