import type { Decision, Epoch, PoolSettings } from '@broomwagon/contracts';
import { chooseServer, namedChoice, type ChosenServer, weighed } from '@broomwagon/policies';
import { RoutingCounts } from './routing-counts';
import { buildLaneKey, servesLane } from './lane-key';
import { meets } from './listed-models';
import type { ModelLease, ModelReceipt, ModelServer, ModelWaiterAnswer } from './routing-model.types';
import { WaitingLanes, type ModelAcquire, type ModelWaiter } from './waiting-lanes';

const TURN = 4_096;

/** Turn of a server after a lease: a lease moves it on by 4,096 / weight. */
export function turnAfter(turn: number, weight: number): number {
  return turn + Math.max(1, Math.floor(TURN / weight + 0.5));
}

/** Grants of leases: the choice of a server, its receipt, and the choice of waiters for room that became free. */
export abstract class RoutingGrants extends RoutingCounts {
  readonly lanes = new WaitingLanes();
  protected readonly liveEpochs = new Map<string, { epoch: Epoch; registrationId: string }>();
  /** Workers that were ever registered. */
  protected readonly knownWorkers = new Set<string>();
  protected readonly sequence = { lease: 0, epoch: 0 };
  protected paused = false;
  protected settings: PoolSettings = {};
  protected settingsVersion = 0;

  /** Whether the server may be chosen: a server without the pool's required weight version is quarantined. */
  protected override isUsable(serverId: string): boolean {
    const { weightVersion } = this.servers.get(serverId) ?? {};
    const { requiredWeightVersion: wanted = weightVersion } = this.settings;
    return super.isUsable(serverId) && weightVersion === wanted;
  }

  protected takesLeases(): boolean {
    return !this.paused && this.leases.size < (this.settings.poolMaxInflight ?? Number.POSITIVE_INFINITY);
  }

  /** No acquire is granted while the pool is paused or has `poolMaxInflight` leases. */
  protected place(acquire: ModelAcquire): ChosenServer | { lane: string } {
    const choice = this.takesLeases() ? this.choose(acquire) : { waitsFor: '*' };
    return 'server' in choice ? choice : { lane: choice.waitsFor ?? buildLaneKey(acquire) };
  }

  private choose(acquire: ModelAcquire) {
    const binding = acquire.sessionId === undefined ? undefined : this.sessions.get(acquire.sessionId);
    const bound = binding && this.servers.get(binding.serverId);
    const named = acquire.boundServerId === undefined ? undefined : this.servers.get(acquire.boundServerId);
    const isBound = bound !== undefined && bound.epoch === binding?.epoch && this.isUsable(bound.serverId);
    return chooseServer({
      settings: this.settings,
      request: acquire,
      boundTo: isBound ? bound.serverId : undefined,
      namedServer: named && this.canTake(named, acquire) ? named.serverId : undefined,
      newestWeightVersion: this.newestWeightVersion(),
      servers: [...this.servers.values()].map((server) => this.asSeen(server, acquire)),
    });
  }

  /** Whether the server that the acquire names can take it. */
  private canTake(server: ModelServer, acquire: ModelAcquire): boolean {
    const { boundServerEpoch: epoch = server.epoch } = acquire;
    const hasRoom = this.isUsable(server.serverId) && this.inflight(server.serverId) < server.maxInflight;
    return server.epoch === epoch && hasRoom && meets(server, acquire, this.newestWeightVersion());
  }

  protected grant(acquire: ModelAcquire, choice: ChosenServer, waited = false) {
    const { server: serverId, branch, via, reached } = choice;
    const server = this.servers.get(serverId)!;
    const seq = ++this.sequence.lease;
    const receipt = this.buildReceipt(choice);
    const lease = { seq, serverId, serverEpoch: server.epoch, acquire, receipt: { serverId, ...receipt } };
    this.leases.set(acquire.acquireId, lease);
    this.stepBack(server, seq, reached);
    if (acquire.sessionId !== undefined) this.bind(acquire.sessionId, server, acquire.dpRank);
    const answer = this.buildAnswer(lease, waited ? 'waited' : branch);
    return waited ? { ...answer, via: branch } : { ...answer, ...(via === undefined ? {} : { via }) };
  }

  private buildReceipt({ key, best, eligible }: Pick<ChosenServer, 'key' | 'best' | 'eligible'>): ModelReceipt {
    const { policy = 'least-inflight' } = this.settings;
    return { policy, policyVersion: this.settingsVersion, key, best, eligible };
  }

  /** Orders a server that was just chosen behind its equals. */
  private stepBack(server: ModelServer, seq: number, reached = 0): void {
    server.chosen = seq;
    if (this.settings.policy !== 'round-robin') return;
    this.virtualTurn = Math.max(this.virtualTurn, reached);
    server.turn = turnAfter(Math.max(server.turn, this.virtualTurn), server.weight);
  }

  /** Moves a lease, and its session if that was bound to the previous server. Returns the receipt. */
  protected move(lease: ModelLease, target: ModelServer): ModelReceipt {
    const seen = [...this.servers.values()].map((server) => this.asSeen(server));
    const receipt = this.buildReceipt(namedChoice(seen, target.serverId, this.settings.policy));
    const { sessionId } = lease.acquire;
    const binding = sessionId === undefined ? undefined : this.sessions.get(sessionId);
    if (binding?.serverId === lease.serverId && binding.epoch === lease.serverEpoch) {
      Object.assign(binding, { serverId: target.serverId, epoch: target.epoch, dpRank: undefined });
    }
    Object.assign(lease, { serverId: target.serverId, serverEpoch: target.epoch });
    this.stepBack(target, ++this.sequence.lease);
    return receipt;
  }

  protected grantWaiters(serverIds: string[]): ModelWaiterAnswer[] {
    const answers: ModelWaiterAnswer[] = [];
    // Room under `poolMaxInflight` can be used on any server, not only on the server whose lease ended.
    const ids = this.settings.poolMaxInflight === undefined ? serverIds : [...this.servers.keys()];
    const skipped = new Set<ModelWaiter>();
    for (const id of ids.sort()) {
      while (this.takesLeases()) {
        const server = this.servers.get(id);
        if (!server || !this.isUsable(id) || this.inflight(id) >= server.maxInflight) break;
        const waiter = this.lanes.first(
          (one) => !skipped.has(one) && (this.isServed(one, server) || this.mayLeaveFor(one, server)),
        );
        if (!waiter) break;
        const leaves = !this.isServed(waiter, server);
        if (this.settle(waiter, answers)) continue;
        if (!leaves) break;
        skipped.add(waiter);
      }
    }
    return answers;
  }

  private isServed(waiter: ModelWaiter, server: ModelServer): boolean {
    return servesLane(server, waiter.lane, this.newestWeightVersion());
  }

  /** Whether a waiter for its session's server may take this server instead, since the load differs by the margin. */
  private mayLeaveFor({ lane, acquire }: ModelWaiter, server: ModelServer): boolean {
    const { affinityBreakMargin: margin = 'never', affinityBreakMaxContextTokens: longest = Infinity } = this.settings;
    const bound = this.servers.get(lane);
    if (!bound || !this.isUsable(lane) || margin === 'never' || (acquire.contextTokens ?? 0) > longest) return false;
    const load = (one: ModelServer) => weighed(this.inflight(one.serverId), one.weight);
    return load(bound) > load(server) + margin && meets(server, acquire, this.newestWeightVersion());
  }

  /** Serves or moves a waiter. True if the waiter left its lane. */
  protected settle(waiter: ModelWaiter, answers: ModelWaiterAnswer[]): boolean {
    const { acquire } = waiter;
    if (!this.isCurrent(acquire)) {
      this.lanes.remove(waiter);
      answers.push({ acquireId: acquire.acquireId, error: 'FENCED' });
      return true;
    }
    const choice = this.place(acquire);
    if ('server' in choice) {
      this.lanes.remove(waiter, true);
      answers.push({ acquireId: acquire.acquireId, ...this.grant(acquire, choice, true) });
      return true;
    }
    if (choice.lane === waiter.lane) return false;
    waiter.lane = choice.lane;
    return true;
  }

  protected buildAnswer(lease: ModelLease, branch: Decision['branch'], receipt = this.keptReceipt(lease)) {
    const { seq, serverId, serverEpoch, acquire } = lease;
    const binding = acquire.sessionId === undefined ? undefined : this.sessions.get(acquire.sessionId);
    const dpRank = binding?.serverId === serverId && binding.epoch === serverEpoch ? binding.dpRank : undefined;
    return { seq, serverId, branch, inflight: this.inflight(serverId), dpRank, ...receipt };
  }

  /** Receipt of the choice, without the details if the lease was moved to another server since. */
  private keptReceipt({ serverId, receipt: { serverId: chosen, ...receipt } }: ModelLease): ModelReceipt {
    const { policy = 'least-inflight' } = this.settings;
    return chosen === serverId ? receipt : { policy, policyVersion: this.settingsVersion };
  }

  /** Error code for a worker whose epoch is not the current one. */
  protected getFenceCode(workerId: string): 'FENCED' | 'WORKER_NOT_FOUND' {
    return this.knownWorkers.has(workerId) ? 'FENCED' : 'WORKER_NOT_FOUND';
  }

  protected isCurrent(acquire: ModelAcquire): boolean {
    return this.liveEpochs.get(acquire.workerId)?.epoch === acquire.workerEpoch;
  }
}
