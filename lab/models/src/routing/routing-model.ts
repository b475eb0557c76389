import type { Epoch, PoolSettings, UnservedReason } from '@broomwagon/contracts';
import { meets, modelConstraint } from './listed-models';
import { RoutingGrants } from './routing-grants';
import type {
  ModelAnswer,
  ModelLease,
  ModelRegistration,
  ModelTransfer,
  ModelWaiterAnswer,
} from './routing-model.types';
import type { ModelAcquire } from './waiting-lanes';

/**
 * Reference model of the routing transitions of the Lua scripts of libs/state, in plain TypeScript and without time,
 * paging or I/O. A differential test drives both with the same events.
 */
export class RoutingModel extends RoutingGrants {
  private readonly released = new Map<string, ModelLease | 'tombstone'>();
  private readonly transfers = new Map<string, { what: string; answer: ModelAnswer }>();

  /** @param nextEpoch creates the next epoch; the scripts use random epochs */
  constructor(private readonly nextEpoch: () => Epoch = () => `${++this.sequence.epoch}`) {
    super();
  }

  registerServer(registration: ModelRegistration): { epoch: Epoch; answers: ModelWaiterAnswer[] } {
    const known = this.servers.get(registration.serverId);
    const sameStart = known?.instanceId !== undefined && known.instanceId === registration.instanceId;
    const epoch = sameStart ? known.epoch : this.nextEpoch();
    const { chosen = 0, turn = 0, labels = undefined, lacks = undefined, models = undefined } = sameStart ? known : {};
    const server = {
      ...registration,
      labels: registration.labels ?? labels,
      lacks: registration.lacks ?? lacks,
      models: registration.models ?? models,
      epoch,
      chosen,
      turn,
    };
    this.servers.set(registration.serverId, server);
    if (!sameStart) this.fenced.delete(registration.serverId);
    return { epoch, answers: this.grantWaiters([registration.serverId]) };
  }

  /**
   * Changes settings. A new policy applies only after the waiters of every server were reviewed with the other new
   * settings.
   */
  configure(
    set: PoolSettings,
    reset: readonly (keyof PoolSettings)[] = [],
  ): { version: number; answers: ModelWaiterAnswer[] } {
    const before = JSON.stringify(Object.entries(this.settings).sort());
    const next = { ...this.settings, ...set };
    for (const name of reset) if (!(name in set)) delete next[name];
    // No policy means the default policy.
    if (next.policy === undefined && this.settings.policy !== undefined) next.policy = 'least-inflight';
    if (next.policy === 'least-inflight' && this.settings.policy === undefined) delete next.policy;
    if (JSON.stringify(Object.entries(next).sort()) !== before) this.settingsVersion++;
    this.settings = { ...next, policy: this.settings.policy };
    const answers = this.grantWaiters([...this.servers.keys()]);
    this.settings = next;
    return { version: this.settingsVersion, answers };
  }

  /** The leases of the removed epoch stay until {@link sweep}. */
  removeServer(serverId: string): boolean {
    this.cordoned.delete(serverId);
    this.fenced.delete(serverId);
    this.draining.delete(serverId);
    return this.servers.delete(serverId);
  }

  /** Starts a drain. False for an unknown server. */
  drainServer(serverId: string): boolean {
    if (this.servers.has(serverId)) this.draining.add(serverId);
    return this.servers.has(serverId);
  }

  /** Removes draining servers without leases; the model has no drain deadlines. */
  endDrains(): string[] {
    const ended = [...this.draining].filter((serverId) => this.inflight(serverId) === 0);
    for (const serverId of ended) this.removeServer(serverId);
    return ended;
  }

  /** Fences a server; the leases of its epoch stay until {@link sweep}. Undefined for an unknown server. */
  fenceServer(serverId: string, epoch: Epoch): { changed: boolean; epoch: Epoch } | undefined {
    const server = this.servers.get(serverId);
    if (!server) return undefined;
    const changed = epoch === server.epoch && !this.fenced.has(serverId);
    if (changed) {
      this.fenced.add(serverId);
      server.epoch = this.nextEpoch();
    }
    return { changed, epoch: server.epoch };
  }

  /** Cordons a server, or ends its cordon and any drain. Undefined for an unknown server. */
  cordonServer(serverId: string, cordoned: boolean): ModelWaiterAnswer[] | undefined {
    if (!this.servers.has(serverId)) return undefined;
    if (cordoned) this.cordoned.add(serverId);
    else for (const kept of [this.cordoned, this.draining]) kept.delete(serverId);
    return this.grantWaiters([serverId]);
  }

  /** Changes properties of a server. Undefined for an unknown server. */
  updateServer(
    serverId: string,
    change: Partial<Pick<ModelRegistration, 'maxInflight' | 'weight' | 'weightVersion' | 'labels'>>,
  ): ModelWaiterAnswer[] | undefined {
    const server = this.servers.get(serverId);
    if (!server) return undefined;
    Object.assign(server, change);
    return this.grantWaiters([serverId]);
  }

  /** Pauses the pool, which stops all grants, or resumes it. */
  pausePool(paused: boolean): { changed: boolean; answers: ModelWaiterAnswer[] } {
    const changed = this.paused !== paused;
    this.paused = paused;
    return { changed, answers: paused ? [] : this.grantWaiters([...this.servers.keys()]) };
  }

  /** Ends the waiting of an acquire; a granted lease stays. */
  cancel(acquireId: string, workerId: string, workerEpoch: Epoch) {
    const refuse = (reason: string) => ({ cancelled: false, reason, answers: [] as ModelWaiterAnswer[] });
    if (this.liveEpochs.get(workerId)?.epoch !== workerEpoch) {
      return refuse(this.knownWorkers.has(workerId) ? 'fenced' : 'WORKER_NOT_FOUND');
    }
    const parked = this.lanes.get(acquireId);
    if (parked) {
      if (parked.acquire.workerId !== workerId) return refuse('fenced');
      this.lanes.remove(parked);
      this.released.set(acquireId, 'tombstone');
      return { cancelled: true, reason: 'cancelled', answers: [{ acquireId, error: 'RELEASED' }] };
    }
    if (this.leases.has(acquireId)) return refuse('granted');
    const past = this.released.get(acquireId);
    if (past !== undefined && past !== 'tombstone') return refuse('released');
    this.released.set(acquireId, 'tombstone');
    return refuse('tombstone');
  }

  registerWorker(workerId: string, registrationId: string): Epoch {
    const live = this.liveEpochs.get(workerId);
    if (live?.registrationId === registrationId) return live.epoch;
    const epoch = this.nextEpoch();
    this.liveEpochs.set(workerId, { epoch, registrationId });
    this.knownWorkers.add(workerId);
    return epoch;
  }

  /** Whether the worker is registered, and not expired. */
  isLive(workerId: string): boolean {
    return this.liveEpochs.has(workerId);
  }

  /** Ends the epoch of a worker that was deregistered or expired. */
  expiredWorker(workerId: string): void {
    this.liveEpochs.delete(workerId);
  }

  acquire(asked: ModelAcquire): ModelAnswer {
    let acquire = asked;
    if (!this.isCurrent(acquire)) return { error: this.getFenceCode(acquire.workerId) };
    const repeated = this.repeated(acquire);
    if (repeated) return repeated;
    const parked = this.lanes.get(acquire.acquireId);
    if (parked && parked.acquire.workerId !== acquire.workerId) return { error: 'VALIDATION_FAILED' };
    if (parked && acquire.waits && parked.acquire.workerEpoch === acquire.workerEpoch) return { parked: true };
    if (parked) this.lanes.remove(parked);
    if (acquire.model !== undefined) {
      const lists = [...this.servers.values()].map(({ models }) => models);
      const constraint = modelConstraint(lists, acquire.model);
      if (constraint === 'unknown') return { error: 'MODEL_NOT_FOUND' };
      if (constraint === 'nothing') acquire = { ...acquire, model: undefined };
    }
    const choice = this.place(acquire);
    if ('server' in choice) return this.grant(acquire, choice);
    if (this.nobodyHas(acquire.needs)) return { error: 'NO_CAPABLE_SERVER' };
    if (!acquire.waits) return this.obstacleTo(acquire);
    this.lanes.park(acquire, choice.lane);
    return { parked: true };
  }

  private obstacleTo(acquire: ModelAcquire): { error: string; reason: UnservedReason } {
    if (this.paused) return { error: 'POOL_PAUSED', reason: 'paused' };
    const newest = this.newestWeightVersion();
    const usable = [...this.servers.values()].filter(({ serverId }) => this.isUsable(serverId));
    if (usable.some((server) => meets(server, acquire, newest))) {
      return { error: 'SERVERS_FULL', reason: this.takesLeases() ? 'servers-full' : 'pool-full' };
    }
    const error = 'NO_SERVER_AVAILABLE';
    if (this.servers.size === 0) return { error, reason: 'no-servers' };
    const isQuarantined = [...this.servers.keys()].some((serverId) => !this.isClosed(serverId));
    if (usable.length === 0 && isQuarantined) return { error, reason: 'weights-differ' };
    const lasting = { ...acquire, weightVersion: undefined, minWeightVersion: undefined, maxWeightLag: undefined };
    const mayFit = [...this.servers.values()].some((server) => meets(server, lasting, newest));
    return { error, reason: mayFit ? 'none-ready' : 'none-fits' };
  }

  private nobodyHas(needs: ModelAcquire['needs'] = []): boolean {
    const servers = [...this.servers.values()];
    return servers.length > 0 && needs.some((feature) => servers.every(({ lacks }) => lacks?.includes(feature)));
  }

  /** Releases the lease of an acquire; with `seq`, only the lease of this sequence number. */
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

  /** Moves a lease to another server. `answers`: grants to waiters for the freed room on the previous server. */
  transfer(wanted: ModelTransfer): { answer: ModelAnswer; answers: ModelWaiterAnswer[] } {
    const refuse = (error: string) => ({ answer: { error }, answers: [] as ModelWaiterAnswer[] });
    const { transferId, acquireId, seq, workerId, workerEpoch, targetServerId, targetEpoch } = wanted;
    if (this.liveEpochs.get(workerId)?.epoch !== workerEpoch) return refuse(this.getFenceCode(workerId));
    const what = `${acquireId}|${targetServerId}`;
    const first = this.transfers.get(transferId);
    if (first) return first.what === what ? { answer: first.answer, answers: [] } : refuse('VALIDATION_FAILED');
    const lease = this.leases.get(acquireId);
    const isHeld = lease?.acquire.workerId === workerId && lease.acquire.workerEpoch === workerEpoch;
    if (!lease || !isHeld || (seq !== undefined && seq !== lease.seq)) return refuse('LEASE_NOT_FOUND');
    if (!this.isOnCurrentEpoch(lease)) return refuse('FENCED');
    const target = this.servers.get(targetServerId);
    if (!target) return refuse('SERVER_NOT_FOUND');
    if (targetEpoch !== undefined && targetEpoch !== target.epoch) return refuse('FENCED');
    if (lease.serverId === targetServerId) return refuse('VALIDATION_FAILED');
    if (this.paused) return refuse('POOL_PAUSED');
    if (!this.isUsable(targetServerId)) return refuse('SERVER_NOT_READY');
    if (!meets(target, lease.acquire, this.newestWeightVersion())) return refuse('SERVER_UNSUITABLE');
    if (this.inflight(targetServerId) >= target.maxInflight) return refuse('SERVER_FULL');
    const from = lease.serverId;
    const receipt = this.move(lease, target);
    const answer = this.buildAnswer(lease, 'transferred', receipt);
    this.transfers.set(transferId, { what, answer });
    return { answer, answers: this.grantWaiters([from]) };
  }

  /** Releases leases of fenced or removed servers and of expired workers, and moves waiters of unusable servers. */
  sweep(): ModelWaiterAnswer[] {
    const answers: ModelWaiterAnswer[] = [];
    for (const waiter of this.lanes.inOrder(({ lane }) => !/^[*@]/.test(lane) && !this.isUsable(lane))) {
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
      if (sameHolder && this.isOnCurrentEpoch(lease)) return this.buildAnswer(lease, 'repeated');
      if (!sameHolder && this.isCurrent(lease.acquire)) return { error: 'VALIDATION_FAILED' };
      this.giveBack(lease);
      return undefined;
    }
    const past = this.released.get(acquire.acquireId);
    if (past === undefined) return undefined;
    if (past !== 'tombstone' && isSameHolder(past, acquire) && this.isOnCurrentEpoch(past)) {
      return this.buildAnswer(past, 'repeated');
    }
    return { error: 'RELEASED' };
  }
}

function isSameHolder(lease: ModelLease, acquire: ModelAcquire): boolean {
  return lease.acquire.workerId === acquire.workerId && lease.acquire.workerEpoch === acquire.workerEpoch;
}
