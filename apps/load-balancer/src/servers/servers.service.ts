import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  type ListServersReply,
  type DrainServerRequest,
  type FenceServerReply,
  type FenceServerRequest,
  type ReconcileServerReply,
  type ReconcileServerRequest,
  type RegisterServerReply,
  type RegisterServerRequest,
  type RemoveServerReply,
  type ServerChangeReply,
  type ServerHeartbeatReply,
  type ServerHeartbeatRequest,
  type UpdateServerRequest,
} from '@broomwagon/contracts';
import { EngineAccess } from '@broomwagon/engines';
import { PoolDirectory, RoutingStore, ServerStore, type ServerChange, type ServerStart } from '@broomwagon/state';
import { WaiterAnswersService } from '../acquire/waiter-answers.service';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from '../upkeep/sweep.service';
import { lackedFeatures } from './lacked-features';
import { PrefixCachesService } from './prefix-caches.service';
import { ProbeService } from './probe.service';

function checkCursor(cursor: string): void {
  if (/^\d{1,20}$/.test(cursor)) return;
  throw new BroomwagonError('VALIDATION_FAILED', 'The cursor is not one of ours', { field: 'cursor' });
}

function startOf({ endpoint, dialect, instanceId }: RegisterServerRequest): ServerStart {
  return { endpoint, dialect, instanceId: instanceId ?? undefined };
}

/** The registry of servers. */
@Injectable()
export class ServersService {
  private readonly logger = new Logger(ServersService.name);

  constructor(
    private readonly store: RoutingStore,
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly changes: ServerStore,
    private readonly access: EngineAccess,
    private readonly metrics: LoadBalancerMetrics,
    private readonly prober: ProbeService,
    private readonly caches: PrefixCachesService,
  ) {}

  /**
   * Waits for the first answer of a new start, a second at most; new room goes to waiters.
   * @param discovered found by a list: what was set for a known server by name goes before the request
   * @throws BroomwagonError VALIDATION_FAILED for an address outside the allow-list, UNAVAILABLE
   */
  async register(pool: string, request: RegisterServerRequest, discovered = false): Promise<RegisterServerReply> {
    this.access.check(request.endpoint);
    await this.pools.add(pool);
    const { capabilities, labels, ...rest } = request;
    const taken = discovered ? {} : await this.takenVersion(pool, request, startOf(request));
    const reply = await this.store.registerServer(pool, {
      ...rest,
      ...taken.change,
      weight: request.weight ?? 1,
      capabilities: capabilities && JSON.stringify(capabilities),
      lacks: lackedFeatures(capabilities),
      labels: labels == null ? undefined : JSON.stringify(labels),
      discovered,
    });
    this.waiters.sendAll(pool, reply);
    this.sweeper.soon(pool);
    const { serverId, epoch } = reply;
    const { endpoint, dialect } = request;
    const state =
      reply.state === 'pending' ? await this.prober.first(pool, { serverId, epoch, endpoint, dialect }) : reply.state;
    return { serverId, epoch, state, ...taken.reply };
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED, UNAVAILABLE */
  async heartbeat(pool: string, request: ServerHeartbeatRequest): Promise<ServerHeartbeatReply> {
    const { weightVersion } = request;
    const taken = await this.takenVersion(pool, request);
    const version = taken.change ? undefined : weightVersion;
    const reply = await this.store.heartbeatServer(pool, request.serverId, request.epoch, version);
    this.waiters.sendAll(pool, reply);
    const { requiredWeightVersion } = reply;
    return {
      state: reply.states[request.serverId]!,
      ...(requiredWeightVersion === undefined ? {} : { requiredWeightVersion }),
      ...taken.reply,
    };
  }

  /** Nothing when the version that a server reports may be taken; else what to change without it, and to reply. */
  private async takenVersion(
    pool: string,
    { serverId, weightVersion }: { serverId: string; weightVersion?: number | null },
    start?: ServerStart,
  ): Promise<{ change?: { weightVersion: undefined }; reply?: { weightVersionTaken: false } }> {
    if (weightVersion == null || (await this.caches.mayTake(pool, serverId, weightVersion, start))) return {};
    return { change: { weightVersion: undefined }, reply: { weightVersionTaken: false } };
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async update(pool: string, request: UpdateServerRequest): Promise<ServerChangeReply> {
    const taken = await this.takenVersion(pool, request);
    const change = await this.changes.update(pool, { ...request, ...taken.change });
    return { ...this.changed(pool, change), ...taken.reply };
  }

  /** `false` also takes a drain back. @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async cordon(pool: string, serverId: string, cordoned: boolean): Promise<ServerChangeReply> {
    return this.changed(pool, await this.changes.cordon(pool, serverId, cordoned));
  }

  /** The end of the drain is upkeep's. @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async drain(pool: string, request: DrainServerRequest): Promise<ServerChangeReply> {
    return this.changed(pool, await this.changes.drain(pool, request.serverId, request.deadlineMs));
  }

  /** Waiters of a server that takes no leases now are moved by the sweep. */
  private changed(pool: string, { answers, servers, more, ...reply }: ServerChange): ServerChangeReply {
    this.waiters.sendAll(pool, { answers, servers, more });
    this.sweeper.soon(pool);
    return reply;
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async fence(pool: string, { serverId, epoch, reason }: FenceServerRequest): Promise<FenceServerReply> {
    const reply = await this.changes.fence(pool, serverId, epoch, reason ?? '');
    if (reply.changed) {
      this.metrics.serverFenced();
      this.logger.warn({ pool, serverId, epoch, reason }, 'A server is fenced; its leases are void');
      this.sweeper.soon(pool);
    }
    return reply;
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED, VALIDATION_FAILED for a cursor that is none, UNAVAILABLE */
  async reconcile(pool: string, request: ReconcileServerRequest): Promise<ReconcileServerReply> {
    const from = request.cursor ?? '0';
    checkCursor(from);
    const page = await this.changes.reconcile(pool, request.serverId, from, request.epoch);
    const { answers, servers, more, cursor, ...reply } = page;
    this.waiters.sendAll(pool, { answers, servers, more });
    return { ...reply, ...(cursor === '0' ? {} : { cursor }) };
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async remove(pool: string, serverId: string): Promise<RemoveServerReply> {
    const reply = await this.store.removeServer(pool, serverId);
    this.sweeper.soon(pool);
    return reply;
  }

  /** @throws BroomwagonError VALIDATION_FAILED for a cursor that is none, UNAVAILABLE */
  async list(pool: string, cursor: string): Promise<ListServersReply> {
    checkCursor(cursor);
    const page = await this.store.listServers(pool, cursor);
    return { servers: page.servers, ...(page.cursor === '0' ? {} : { cursor: page.cursor }) };
  }
}
