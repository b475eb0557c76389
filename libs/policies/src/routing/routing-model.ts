import { chooseServer, type ModelServer } from './least-inflight';
import { WaitingLanes, type ModelAcquire, type ModelWaiter } from './waiting-lanes';

interface ModelLease {
  seq: number;
  serverId: string;
  serverEpoch: number;
  acquire: ModelAcquire;
}
interface ModelBinding {
  serverId: string;
  epoch: number;
  /** All of the session, also those from before it was bound anew. */
  leases: number;
  finished: boolean;
}
export type ModelAnswer =
  { seq: number; serverId: string; branch: string; inflight: number } | { error: string } | { parked: true };
/** The answer of a parked acquire. */
export type ModelWaiterAnswer = { acquireId: string } & Exclude<ModelAnswer, { parked: true }>;
export interface ModelRegistration {
  serverId: string;
  instanceId?: string;
  maxInflight: number;
  weight: number;
  weightVersion: number;
}

/**
 * Reference model of the routing transitions: what the Lua scripts of libs/state must do, in plain TypeScript and
 * without time, paging or I/O. A differential test drives both with the same events.
 */
export class RoutingModel {
  readonly servers = new Map<string, ModelServer>();
  readonly leases = new Map<string, ModelLease>();
  readonly sessions = new Map<string, ModelBinding>();
  readonly lanes = new WaitingLanes();
  private readonly liveEpochs = new Map<string, { epoch: number; registrationId: string }>();
  private readonly released = new Map<string, ModelLease | 'tombstone'>();
  private sequence = { lease: 0, server: 0, worker: 0 };

  /** Leases of the server's current epoch. */
  inflight(serverId: string): number {
    const epoch = this.servers.get(serverId)?.epoch;
    return [...this.leases.values()].filter((lease) => lease.serverId === serverId && lease.serverEpoch === epoch)
      .length;
  }

  /** Leases of a worker epoch, with the sum of their sequences. */
  heldBy(workerId: string, workerEpoch: number): { count: number; digest: number } {
    const held = [...this.leases.values()].filter(
      ({ acquire }) => acquire.workerId === workerId && acquire.workerEpoch === workerEpoch,
    );
    return { count: held.length, digest: held.reduce((sum, lease) => sum + lease.seq, 0) % 2 ** 40 };
  }

  registerServer(registration: ModelRegistration): { epoch: number; answers: ModelWaiterAnswer[] } {
    const known = this.servers.get(registration.serverId);
    const sameStart = known?.instanceId !== undefined && known.instanceId === registration.instanceId;
    const epoch = sameStart ? known.epoch : ++this.sequence.server;
    this.servers.set(registration.serverId, { ...registration, epoch, chosen: sameStart ? known.chosen : 0 });
    return { epoch, answers: this.grantWaiters([registration.serverId]) };
  }

  /** The leases of the removed epoch stay until {@link sweep}. */
  removeServer(serverId: string): boolean {
    return this.servers.delete(serverId);
  }

  registerWorker(workerId: string, registrationId: string): number {
    const live = this.liveEpochs.get(workerId);
    if (live?.registrationId === registrationId) return live.epoch;
    const epoch = ++this.sequence.worker;
    this.liveEpochs.set(workerId, { epoch, registrationId });
    return epoch;
  }

  /** Deregistered or expired. */
  voidWorker(workerId: string): void {
    this.liveEpochs.delete(workerId);
  }

  acquire(acquire: ModelAcquire): ModelAnswer {
    if (!this.isCurrent(acquire)) return { error: 'FENCED' };
    const repeated = this.repeated(acquire);
    if (repeated) return repeated;
    const parked = this.lanes.get(acquire.acquireId);
    if (parked && parked.acquire.workerId !== acquire.workerId) return { error: 'VALIDATION_FAILED' };
    if (parked && acquire.waits && parked.acquire.workerEpoch === acquire.workerEpoch) return { parked: true };
    if (parked) this.lanes.remove(parked);
    const choice = this.choose(acquire);
    if ('server' in choice) return this.grant(acquire, choice.server, choice.branch);
    if (!acquire.waits) return { error: 'NO_SERVER_AVAILABLE' };
    this.lanes.park(acquire, choice.lane);
    return { parked: true };
  }

  /** With `seq` only that very lease is meant. */
  release(acquireId: string, seq?: number): { released: boolean; reason: string; answers: ModelWaiterAnswer[] } {
    const refuse = (reason: string, answers: ModelWaiterAnswer[] = []) => ({ released: false, reason, answers });
    const lease = this.leases.get(acquireId);
    if (lease === undefined) {
      const past = this.released.get(acquireId);
      if (past !== undefined && past !== 'tombstone') {
        return refuse(seq === undefined || past.seq === seq ? 'already-released' : 'unknown');
      }
      if (seq !== undefined) return refuse('unknown');
      const parked = this.lanes.get(acquireId);
      if (parked) this.lanes.remove(parked);
      this.released.set(acquireId, 'tombstone');
      return refuse('tombstone', parked ? [{ acquireId, error: 'RELEASED' }] : []);
    }
    if (seq !== undefined && seq !== lease.seq) return refuse('already-released');
    if (!this.isOnCurrentEpoch(lease) || !this.isCurrent(lease.acquire)) return refuse('fenced');
    this.giveBack(lease);
    this.released.set(acquireId, lease);
    return { released: true, reason: 'released', answers: this.grantWaiters([lease.serverId]) };
  }

  finishSession(sessionId: string): boolean {
    const binding = this.sessions.get(sessionId);
    if (!binding) return false;
    if (binding.leases === 0) this.sessions.delete(sessionId);
    else binding.finished = true;
    return true;
  }

  /** Returns the leases of one void owner, and moves waiters of servers that are gone. */
  sweep(): ModelWaiterAnswer[] {
    const answers: ModelWaiterAnswer[] = [];
    for (const waiter of this.lanes.inLanesOf((lane) => !/^[*@]/.test(lane) && !this.servers.has(lane))) {
      this.settle(waiter, answers);
    }
    const freed = new Set<string>();
    for (const lease of this.leases.values()) {
      if (this.isOnCurrentEpoch(lease) && this.isCurrent(lease.acquire)) continue;
      this.giveBack(lease);
      freed.add(lease.serverId);
    }
    return [...answers, ...this.grantWaiters([...freed])];
  }

  private repeated(acquire: ModelAcquire): ModelAnswer | undefined {
    const lease = this.leases.get(acquire.acquireId);
    if (lease) {
      const sameHolder = isSameHolder(lease, acquire);
      if (sameHolder && this.isOnCurrentEpoch(lease)) return this.answerOf(lease, 'repeated');
      if (!sameHolder && this.isCurrent(lease.acquire)) return { error: 'VALIDATION_FAILED' };
      this.giveBack(lease);
      return undefined;
    }
    const past = this.released.get(acquire.acquireId);
    if (past === undefined) return undefined;
    if (past !== 'tombstone' && isSameHolder(past, acquire) && this.isOnCurrentEpoch(past)) {
      return this.answerOf(past, 'repeated');
    }
    return { error: 'RELEASED' };
  }

  private choose(acquire: ModelAcquire) {
    const binding = acquire.sessionId === undefined ? undefined : this.sessions.get(acquire.sessionId);
    const bound = binding && this.servers.get(binding.serverId);
    const isBound = bound !== undefined && bound.epoch === binding?.epoch;
    const servers = [...this.servers.values()];
    const loadOf = (serverId: string) => this.inflight(serverId);
    return chooseServer(servers, loadOf, acquire.weightVersion, isBound ? bound.serverId : undefined);
  }

  private grant(acquire: ModelAcquire, serverId: string, branch: string) {
    const server = this.servers.get(serverId)!;
    const seq = ++this.sequence.lease;
    const lease: ModelLease = { seq, serverId, serverEpoch: server.epoch, acquire };
    this.leases.set(acquire.acquireId, lease);
    server.chosen = seq;
    if (acquire.sessionId !== undefined) {
      const leases = (this.sessions.get(acquire.sessionId)?.leases ?? 0) + 1;
      this.sessions.set(acquire.sessionId, { serverId, epoch: server.epoch, leases, finished: false });
    }
    return this.answerOf(lease, branch);
  }

  private giveBack(lease: ModelLease): void {
    this.leases.delete(lease.acquire.acquireId);
    const { sessionId } = lease.acquire;
    const binding = sessionId === undefined ? undefined : this.sessions.get(sessionId);
    if (sessionId === undefined || binding === undefined) return;
    binding.leases -= 1;
    if (binding.leases === 0 && binding.finished) this.sessions.delete(sessionId);
  }

  private grantWaiters(serverIds: string[]): ModelWaiterAnswer[] {
    const answers: ModelWaiterAnswer[] = [];
    for (const id of serverIds.sort()) {
      for (;;) {
        const server = this.servers.get(id);
        if (!server || this.inflight(id) >= server.maxInflight) break;
        const waiter = this.lanes.first([id, '*', `@${server.weightVersion}`]);
        if (!waiter || !this.settle(waiter, answers)) break;
      }
    }
    return answers;
  }

  /** True when the waiter left the lane it stood in. */
  private settle(waiter: ModelWaiter, answers: ModelWaiterAnswer[]): boolean {
    const { acquire } = waiter;
    if (!this.isCurrent(acquire)) {
      this.lanes.remove(waiter);
      answers.push({ acquireId: acquire.acquireId, error: 'FENCED' });
      return true;
    }
    const choice = this.choose(acquire);
    if ('server' in choice) {
      this.lanes.remove(waiter);
      answers.push({ acquireId: acquire.acquireId, ...this.grant(acquire, choice.server, 'waited') });
      return true;
    }
    if (choice.lane === waiter.lane) return false;
    waiter.lane = choice.lane;
    return true;
  }

  private answerOf(lease: ModelLease, branch: string) {
    return { seq: lease.seq, serverId: lease.serverId, branch, inflight: this.inflight(lease.serverId) };
  }

  private isCurrent(acquire: ModelAcquire): boolean {
    return this.liveEpochs.get(acquire.workerId)?.epoch === acquire.workerEpoch;
  }

  private isOnCurrentEpoch(lease: ModelLease): boolean {
    return this.servers.get(lease.serverId)?.epoch === lease.serverEpoch;
  }
}

function isSameHolder(lease: ModelLease, acquire: ModelAcquire): boolean {
  return lease.acquire.workerId === acquire.workerId && lease.acquire.workerEpoch === acquire.workerEpoch;
}
