import { Injectable } from '@nestjs/common';
import {
  type DeregisterWorkerReply,
  type EngineCapabilities,
  type Epoch,
  type FinishSessionReply,
  newEpoch,
  type PausePoolReply,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type RemoveServerReply,
  type ServerId,
  type ServerStatus,
  type SyncWorkerReply,
  type WorkerHeartbeatReply,
  type WorkerId,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import { grantedOf } from '../leases/grants';
import {
  ROUTING_BOUNDS,
  type AcquireEntry,
  type AcquireResult,
  type AcquireScriptReply,
  type CancelScriptReply,
  type ExpireWaitersReply,
  type ExpireWorkersReply,
  type HeartbeatServersReply,
  type PoolTotals,
  type RegisterServerScriptReply,
  type ReleaseEntry,
  type ReleaseScriptReply,
  type ReviewLimits,
  type ReviewServersReply,
  RoutingBounds,
  type ServerPage,
  type ServerRegistration,
  type ServerTable,
  type SweepReply,
  type TransferEntry,
  type TransferScriptReply,
  type WaiterAnswers,
} from './routing.types';

type Bounded<Args> = Args & { mostSessions: number };
interface WorkerEpoch {
  workerId: WorkerId;
  workerEpoch: Epoch;
}
type RawHeartbeat = Omit<WorkerHeartbeatReply, 'leaseDigest'> & { leaseDigest: string };

/** Capabilities are kept as the text they came in: cjson would write an empty list as an object. */
type RawServerPage = Omit<ServerPage, 'servers'> & {
  servers: (Omit<ServerStatus, 'capabilities'> & { capabilities?: string })[];
};

/** A fresh grant is its line of the ring of decisions. */
type RawAcquireReply = Omit<AcquireScriptReply, 'results'> & { results: (AcquireResult | string)[] };

const TRANSITIONS = {
  acquire: transition<Bounded<{ items: AcquireEntry[]; mostWaiters: number }>, RawAcquireReply>('leases/acquire'),
  release: transition<Bounded<{ items: ReleaseEntry[]; rememberMs: number }>, ReleaseScriptReply>('leases/release'),
  transfer: transition<Bounded<TransferEntry & { rememberMs: number }>, TransferScriptReply>('leases/transfer'),
  grant: transition<Bounded<object>, WaiterAnswers>('waiters/grant'),
  expireWaiters: transition<object, ExpireWaitersReply>('waiters/expire'),
  sweep: transition<Bounded<object>, SweepReply>('leases/sweep'),
  registerServer: transition<Bounded<ServerRegistration & { newEpoch: Epoch }>, RegisterServerScriptReply>(
    'servers/register',
  ),
  heartbeatServers: transition<
    Bounded<{ serverIds: ServerId[]; epoch?: Epoch; weightVersion?: number }>,
    HeartbeatServersReply
  >('servers/heartbeat'),
  reviewServers: transition<Bounded<ReviewLimits & { offset: number; newEpoch: Epoch }>, ReviewServersReply>(
    'servers/review',
  ),
  pausePool: transition<Bounded<{ paused: boolean }>, PausePoolReply & WaiterAnswers>('pools/pause'),
  cancel: transition<WorkerEpoch & { acquireId: string; rememberMs: number }, CancelScriptReply>('leases/cancel'),
  removeServer: transition<{ serverId: ServerId }, RemoveServerReply>('servers/remove'),
  listServers: transition<{ cursor: string }, RawServerPage>('servers/list'),
  registerWorker: transition<RegisterWorkerRequest & { ttlMs: number; newEpoch: Epoch }, RegisterWorkerReply>(
    'workers/register',
  ),
  heartbeatWorker: transition<WorkerEpoch, RawHeartbeat>('workers/heartbeat'),
  syncWorker: transition<WorkerEpoch & { kind: string; cursor: string }, SyncWorkerReply & { cursor: string }>(
    'workers/sync',
  ),
  deregisterWorker: transition<WorkerEpoch, DeregisterWorkerReply>('workers/deregister'),
  expireWorkers: transition<{ gapMs: number }, ExpireWorkersReply>('workers/expire'),
  finishSession: transition<{ sessionId: string }, FinishSessionReply>('sessions/finish'),
  evictSessions: transition<{ idleMs: number }, { evicted: number; more: boolean }>('sessions/evict'),
  status: transition<object, PoolTotals>('pools/status'),
};

/** Leases that one script returns, so that it holds Redis up for no more than 2 ms. */
const RELEASES_A_SCRIPT = 64;

function releasePages(items: readonly ReleaseEntry[]): ReleaseEntry[][] {
  return Array.from({ length: Math.ceil(items.length / RELEASES_A_SCRIPT) }, (_, page) =>
    items.slice(page * RELEASES_A_SCRIPT, (page + 1) * RELEASES_A_SCRIPT),
  );
}

/** Servers, workers, leases, sessions and waiters of the pools: one method, one script, one transition. */
@Injectable()
export class RoutingStore {
  constructor(
    private readonly runner: FunctionRunner,
    private readonly bounds: RoutingBounds = ROUTING_BOUNDS,
  ) {}

  /**
   * Grants, parks or refuses at most 128 acquires, which may be of many workers, in their order.
   * @param brief without the parts of receipts that only their readers need, but for items that `explain`
   */
  async acquire(pool: string, items: AcquireEntry[], brief = false): Promise<AcquireScriptReply> {
    const { mostSessions, mostWaiters } = this.bounds;
    // They leave at once, in their order.
    const pages = await Promise.all(
      acquirePages(items).map((page) =>
        this.runner.run(TRANSITIONS.acquire, pool, { items: page.map(askedOf), mostSessions, mostWaiters }),
      ),
    );
    const servers: ServerTable = {};
    for (const page of pages) Object.assign(servers, page.servers);
    const results = pages.flatMap((page) =>
      page.results.map((result) => (typeof result === 'string' ? grantedOf(result, brief) : result)),
    );
    return { results, servers };
  }

  /** Returns at most 128 leases. */
  async release(pool: string, items: ReleaseEntry[]): Promise<ReleaseScriptReply> {
    const { mostSessions, rememberMs } = this.bounds;
    const reply: ReleaseScriptReply = { results: [], answers: [], servers: {}, more: false };
    const pages = await Promise.all(
      releasePages(items).map((page) =>
        this.runner.run(TRANSITIONS.release, pool, { items: page, mostSessions, rememberMs }),
      ),
    );
    for (const page of pages) {
      reply.results.push(...page.results);
      reply.answers.push(...page.answers);
      Object.assign(reply.servers, page.servers);
      reply.more ||= page.more;
      if (page.broken) reply.broken = [...(reply.broken ?? []), ...page.broken];
    }
    return reply;
  }

  /**
   * Moves a live lease to a named server.
   * @throws BroomwagonError LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL,
   *   SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED; nothing was changed
   */
  transfer(pool: string, entry: TransferEntry): Promise<TransferScriptReply> {
    const { mostSessions, rememberMs } = this.bounds;
    return this.runner.run(TRANSITIONS.transfer, pool, { ...entry, mostSessions, rememberMs });
  }

  /** Ends the waiting of an acquire; what was granted stays. */
  cancel(pool: string, worker: WorkerEpoch, acquireId: string): Promise<CancelScriptReply> {
    const { workerId, workerEpoch } = worker;
    const { rememberMs } = this.bounds;
    return this.runner.run(TRANSITIONS.cancel, pool, { workerId, workerEpoch, acquireId, rememberMs });
  }

  /** Pauses the pool, or resumes it and gives room to those who wait. */
  pausePool(pool: string, paused: boolean): Promise<PausePoolReply & WaiterAnswers> {
    return this.runner.run(TRANSITIONS.pausePool, pool, { paused, mostSessions: this.bounds.mostSessions });
  }

  /** Gives room that is there to waiters, at most 32. */
  grantWaiters(pool: string): Promise<WaiterAnswers> {
    return this.runner.run(TRANSITIONS.grant, pool, { mostSessions: this.bounds.mostSessions });
  }

  /** Answers at most 128 parked acquires whose time is over. */
  expireWaiters(pool: string): Promise<ExpireWaitersReply> {
    return this.runner.run(TRANSITIONS.expireWaiters, pool, {});
  }

  /** One page of returning expired leases and moving waiters of lost servers. */
  sweep(pool: string): Promise<SweepReply> {
    return this.runner.run(TRANSITIONS.sweep, pool, { mostSessions: this.bounds.mostSessions });
  }

  registerServer(pool: string, registration: ServerRegistration): Promise<RegisterServerScriptReply> {
    const { mostSessions } = this.bounds;
    return this.runner.run(TRANSITIONS.registerServer, pool, { ...registration, newEpoch: newEpoch(), mostSessions });
  }

  /** A server's own heartbeat. @throws BroomwagonError SERVER_NOT_FOUND or FENCED */
  heartbeatServer(
    pool: string,
    serverId: ServerId,
    epoch: Epoch,
    weightVersion?: number,
  ): Promise<HeartbeatServersReply> {
    const { mostSessions } = this.bounds;
    const heard = { serverIds: [serverId], epoch, weightVersion, mostSessions };
    return this.runner.run(TRANSITIONS.heartbeatServers, pool, heard);
  }

  /** At most 128 servers whose endpoints answered a probe. */
  heardFrom(pool: string, serverIds: ServerId[]): Promise<HeartbeatServersReply> {
    return this.runner.run(TRANSITIONS.heartbeatServers, pool, { serverIds, mostSessions: this.bounds.mostSessions });
  }

  /** One page of the servers that were not heard of: suspect, then failed. */
  reviewServers(pool: string, limits: ReviewLimits, offset: number): Promise<ReviewServersReply> {
    const { mostSessions } = this.bounds;
    return this.runner.run(TRANSITIONS.reviewServers, pool, { ...limits, offset, newEpoch: newEpoch(), mostSessions });
  }

  removeServer(pool: string, serverId: ServerId): Promise<RemoveServerReply> {
    return this.runner.run(TRANSITIONS.removeServer, pool, { serverId });
  }

  /** One page in no order; begin with cursor `0`, which also ends it. */
  async listServers(pool: string, cursor: string): Promise<ServerPage> {
    const page = await this.runner.run(TRANSITIONS.listServers, pool, { cursor });
    const servers = page.servers.map(({ capabilities, ...server }) => ({
      ...server,
      ...(capabilities !== undefined && { capabilities: JSON.parse(capabilities) as EngineCapabilities }),
    }));
    return { ...page, servers };
  }

  registerWorker(pool: string, request: RegisterWorkerRequest & { ttlMs: number }): Promise<RegisterWorkerReply> {
    return this.runner.run(TRANSITIONS.registerWorker, pool, { ...request, newEpoch: newEpoch() });
  }

  /** @throws BroomwagonError FENCED */
  async heartbeatWorker(pool: string, workerId: WorkerId, workerEpoch: Epoch): Promise<WorkerHeartbeatReply> {
    const raw = await this.runner.run(TRANSITIONS.heartbeatWorker, pool, { workerId, workerEpoch });
    // The plain sum may be over 2^53; only the digest fits a JSON number.
    return { ...raw, leaseDigest: Number(BigInt.asUintN(40, BigInt(raw.leaseDigest))) };
  }

  /** One page of what the epoch holds; begin with cursor `0`, which also ends it. @throws BroomwagonError FENCED */
  syncWorker(
    pool: string,
    worker: WorkerEpoch,
    kind: 'leases' | 'attempts',
    cursor: string,
  ): Promise<SyncWorkerReply & { cursor: string }> {
    const { workerId, workerEpoch } = worker;
    return this.runner.run(TRANSITIONS.syncWorker, pool, { workerId, workerEpoch, kind, cursor });
  }

  deregisterWorker(pool: string, workerId: WorkerId, workerEpoch: Epoch): Promise<DeregisterWorkerReply> {
    return this.runner.run(TRANSITIONS.deregisterWorker, pool, { workerId, workerEpoch });
  }

  /**
   * Expires at most 128 worker epochs; `gapMs` without a call of this counts as an outage, after which none expires.
   */
  expireWorkers(pool: string, gapMs: number): Promise<ExpireWorkersReply> {
    return this.runner.run(TRANSITIONS.expireWorkers, pool, { gapMs });
  }

  finishSession(pool: string, sessionId: string): Promise<FinishSessionReply> {
    return this.runner.run(TRANSITIONS.finishSession, pool, { sessionId });
  }

  /** Forgets at most 128 sessions idle for `idleMs`. */
  evictSessions(pool: string, idleMs: number): Promise<{ evicted: number; more: boolean }> {
    return this.runner.run(TRANSITIONS.evictSessions, pool, { idleMs });
  }

  status(pool: string): Promise<PoolTotals> {
    return this.runner.run(TRANSITIONS.status, pool, {});
  }
}

/** What one script may do, in units of the simplest acquire: it holds Redis up for no more than 2 ms. */
const WORK_A_SCRIPT = 64;
const WORK_OF_RESTRICTED = 8;
const WORK_IN_GROUP = 2;

/**
 * Pages of acquires that hold Redis up for a bounded time: a restricted one, or one with its snapshot, is more work.
 */
function acquirePages(items: readonly AcquireEntry[]): AcquireEntry[][] {
  const pages: AcquireEntry[][] = [];
  let left = 0;
  for (const item of items) {
    const work = workOf(item);
    if (left < work) {
      pages.push([]);
      left = WORK_A_SCRIPT;
    }
    pages.at(-1)!.push(item);
    left -= work;
  }
  return pages;
}

function workOf(item: AcquireEntry): number {
  if (item.explain) return WORK_A_SCRIPT;
  if (isRestricted(item)) return WORK_OF_RESTRICTED;
  return item.groupId == null ? 1 : WORK_IN_GROUP;
}

/** True for an acquire that not every server may serve. */
function isRestricted(item: AcquireEntry): boolean {
  const { weightVersion, minWeightVersion, maxWeightLag, excludeServers, labels, needs } = item;
  return [weightVersion, minWeightVersion, maxWeightLag, excludeServers, labels, needs].some((asked) => asked != null);
}

/** Without what is null or an empty list: null would be true in Lua, and an empty list an object. */
function askedOf(item: AcquireEntry): AcquireEntry {
  const isNothing = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0);
  if (!Object.values(item).some(isNothing)) return item;
  return Object.fromEntries(Object.entries(item).filter(([, value]) => !isNothing(value))) as unknown as AcquireEntry;
}
