import type { Epoch, SnapshotServer } from '@broomwagon/contracts';
import { TOKENS_PER_LOAD } from '@broomwagon/policies';
import { lacksModel } from './listed-models';
import type { ModelBinding, ModelLease, ModelServer } from './routing-model.types';
import type { ModelAcquire } from './waiting-lanes';

/** State of the model: servers, their leases, and the sessions bound to them. */
export class RoutingCounts {
  readonly servers = new Map<string, ModelServer>();
  readonly leases = new Map<string, ModelLease>();
  readonly sessions = new Map<string, ModelBinding>();
  protected readonly cordoned = new Set<string>();
  protected readonly fenced = new Set<string>();
  protected readonly draining = new Set<string>();
  /** Turn that round robin has reached. */
  protected virtualTurn = 0;

  /** Leases of the server's current epoch. */
  inflight(serverId: string): number {
    const epoch = this.servers.get(serverId)?.epoch;
    return [...this.leases.values()].filter((lease) => lease.serverId === serverId && lease.serverEpoch === epoch)
      .length;
  }

  /** Leases of a worker epoch, with the sum of their sequences. */
  heldBy(workerId: string, workerEpoch: Epoch): { count: number; digest: number } {
    const held = [...this.leases.values()].filter(
      ({ acquire }) => acquire.workerId === workerId && acquire.workerEpoch === workerEpoch,
    );
    return { count: held.length, digest: held.reduce((sum, lease) => sum + lease.seq, 0) % 2 ** 40 };
  }

  /**
   * Clears all sessions. A session with leases stays, without a server: its next lease binds it again, its last removes
   * it. Returns the number of cleared sessions.
   */
  clearSessions(): number {
    let cleared = 0;
    for (const [sessionId, binding] of this.sessions) {
      if (binding.leases === 0) this.sessions.delete(sessionId);
      else if (binding.epoch === '') continue;
      else Object.assign(binding, { epoch: '', finished: true, dpRank: undefined });
      cleared++;
    }
    return cleared;
  }

  finishSession(sessionId: string): boolean {
    const binding = this.sessions.get(sessionId);
    if (!binding) return false;
    if (binding.leases === 0) this.sessions.delete(sessionId);
    else binding.finished = true;
    return true;
  }

  protected isClosed(serverId: string): boolean {
    return [this.cordoned, this.fenced, this.draining].some((servers) => servers.has(serverId));
  }

  protected isUsable(serverId: string): boolean {
    return this.servers.has(serverId) && !this.isClosed(serverId);
  }

  protected newestWeightVersion(): number {
    return Math.max(
      0,
      ...[...this.servers.values()]
        .filter(({ serverId }) => this.isUsable(serverId))
        .map(({ weightVersion }) => weightVersion),
    );
  }

  /** A server as the choice for an acquire sees it; without an acquire: for a transfer. */
  protected asSeen(server: ModelServer, acquire?: ModelAcquire): SnapshotServer {
    const { serverId, epoch, maxInflight, weight, weightVersion, chosen, labels, lacks } = server;
    const onIt = ({ serverId: id, serverEpoch }: ModelLease) => id === serverId && serverEpoch === epoch;
    const leases = [...this.leases.values()].filter(onIt);
    const countTokens = (lease: ModelLease) => Math.max(TOKENS_PER_LOAD, lease.acquire.contextTokens ?? 0);
    const { groupId } = acquire ?? {};
    const bound = [...this.sessions.values()].filter((one) => one.serverId === serverId && one.epoch === epoch);
    return {
      serverId,
      leases: leases.length,
      hasRoom: this.isUsable(serverId) && leases.length < maxInflight,
      weight,
      weightVersion,
      chosen,
      labels,
      lacks,
      lacksModel: lacksModel(server, acquire?.model),
      tokens: leases.reduce((sum, lease) => sum + countTokens(lease), 0),
      sessions: bound.length + leases.filter((lease) => lease.acquire.sessionId === undefined).length,
      turn: Math.max(server.turn, this.virtualTurn),
      groupLeases: groupId === undefined ? 0 : leases.filter((lease) => lease.acquire.groupId === groupId).length,
    };
  }

  protected bind(sessionId: string, { serverId, epoch }: ModelServer, dpRank: number | undefined): void {
    const binding = this.sessions.get(sessionId);
    const stays = binding?.serverId === serverId && binding.epoch === epoch;
    this.sessions.set(sessionId, {
      serverId,
      epoch,
      leases: (binding?.leases ?? 0) + 1,
      finished: false,
      dpRank: dpRank ?? (stays ? binding.dpRank : undefined),
    });
  }

  protected giveBack(lease: ModelLease): void {
    this.leases.delete(lease.acquire.acquireId);
    const { sessionId } = lease.acquire;
    const binding = sessionId === undefined ? undefined : this.sessions.get(sessionId);
    if (sessionId === undefined || binding === undefined) return;
    binding.leases -= 1;
    if (binding.leases === 0 && binding.finished) this.sessions.delete(sessionId);
  }

  protected isOnCurrentEpoch(lease: ModelLease): boolean {
    return this.servers.get(lease.serverId)?.epoch === lease.serverEpoch;
  }
}
