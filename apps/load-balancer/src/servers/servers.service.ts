import { Injectable, Logger } from '@nestjs/common';
import {
  invalidField,
  type DrainServerRequest,
  type FenceServerReply,
  type FenceServerRequest,
  type QuarantineServerRequest,
  type ReconcileServerReply,
  type ReconcileServerRequest,
  type RegisterServerReply,
  type RegisterServerRequest,
  type ServerChangeReply,
  type ServerHeartbeatReply,
  type ServerHeartbeatRequest,
  type UpdateServerRequest,
} from '@broomwagon/contracts';
import { EngineAccess, normalizeBaseUrl } from '@broomwagon/engines';
import { PoolDirectory, ServerStore, type ServerChange, type ServerStart } from '@broomwagon/state';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from '../upkeep/sweep.service';
import { missingFeatures } from './missing-features';
import { PrefixCachesService } from './prefix-caches.service';
import { ProbeService } from './probe.service';

@Injectable()
export class ServersService {
  private readonly logger = new Logger(ServersService.name);

  constructor(
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly store: ServerStore,
    private readonly access: EngineAccess,
    private readonly metrics: LoadBalancerMetrics,
    private readonly prober: ProbeService,
    private readonly caches: PrefixCachesService,
  ) {}

  /**
   * Registers a server. Waits for the first answer of a new start, for one second at most. Waiters get the new room.
   * @param listedAs identity of an engine that a source lists. Its registration changes no settings of a known server
   * @throws BroomwagonError VALIDATION_FAILED for an address outside the allow-list, SERVER_ID_TAKEN, UNAVAILABLE
   */
  async register(pool: string, request: RegisterServerRequest, listedAs?: string): Promise<RegisterServerReply> {
    const discovered = listedAs !== undefined;
    this.access.check(request.endpoint);
    const endpoint = normalizeBaseUrl(request.endpoint);
    await this.pools.add(pool);
    const { dialect, instanceId } = request;
    const taken = discovered
      ? {}
      : await this.takenVersion(pool, request, { start: { endpoint, dialect, instanceId } });
    const reply = await this.store.register(pool, {
      ...request,
      ...taken.change,
      endpoint,
      writtenEndpoint: request.endpoint,
      weight: request.weight ?? 1,
      lacks: missingFeatures(request.capabilities),
      discovered,
      listedAs,
    });
    this.waiters.sendAll(pool, reply);
    this.sweeper.soon(pool);
    const { serverId, epoch } = reply;
    const state =
      reply.state === 'pending' ? await this.prober.first(pool, { serverId, epoch, endpoint, dialect }) : reply.state;
    return { serverId, epoch, state, ...taken.reply };
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED, UNAVAILABLE */
  async heartbeat(pool: string, request: ServerHeartbeatRequest): Promise<ServerHeartbeatReply> {
    const taken = await this.takenVersion(pool, request);
    const reply = await this.store.heartbeat(pool, { ...request, ...taken.change });
    this.waiters.sendAll(pool, reply);
    const { requiredWeightVersion } = reply;
    return {
      state: reply.states[request.serverId]!,
      ...(requiredWeightVersion === undefined ? {} : { requiredWeightVersion }),
      ...taken.reply,
    };
  }

  /** Fields that replace the reported version in change and reply while the version may not count; otherwise empty. */
  private async takenVersion(
    pool: string,
    { serverId, weightVersion }: { serverId: string; weightVersion?: number },
    by: { start?: ServerStart; isLoad?: boolean } = {},
  ): Promise<{ change?: { weightVersion: undefined }; reply?: { weightVersionTaken: false } }> {
    if (weightVersion === undefined || (await this.caches.mayTake(pool, serverId, weightVersion, by))) return {};
    this.changed(pool, await this.store.update(pool, { serverId, pendingVersion: weightVersion }));
    return { change: { weightVersion: undefined }, reply: { weightVersionTaken: false } };
  }

  /** @throws BroomwagonError VALIDATION_FAILED, SERVER_NOT_FOUND, UNAVAILABLE */
  async update(pool: string, request: UpdateServerRequest): Promise<ServerChangeReply> {
    if (request.weightsUnknown && request.weightVersion !== undefined) {
      throw invalidField('weightsUnknown', 'must not be sent with weightVersion');
    }
    const taken = await this.takenVersion(pool, request, { isLoad: true });
    const change = await this.store.update(pool, { ...request, ...taken.change });
    return { ...this.changed(pool, change), ...taken.reply };
  }

  /**
   * Cordons a server, or ends its cordon and its drain.
   * @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE
   */
  async cordon(pool: string, serverId: string, cordoned: boolean): Promise<ServerChangeReply> {
    return this.changed(pool, await this.store.cordon(pool, { serverId, cordoned }));
  }

  /**
   * Starts a drain, which UpkeepService ends.
   * @param listedAs identity of the listed engine: if another engine has this server id now, it is not drained
   * @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE; FENCED with listedAs
   */
  async drain(pool: string, request: DrainServerRequest, listedAs?: string): Promise<ServerChangeReply> {
    return this.changed(pool, await this.store.drain(pool, { ...request, listedAs }));
  }

  /**
   * Gives a server no new requests until its engine is listed as ready and registered again.
   * @throws BroomwagonError SERVER_NOT_FOUND, FENCED, UNAVAILABLE
   */
  async withhold(pool: string, server: { serverId: string; listedAs: string }): Promise<ServerChangeReply> {
    return this.changed(pool, await this.store.withhold(pool, { ...server, withheld: true }));
  }

  /** Sends the answers of a change. If the server takes no leases now, the sweep moves its waiters. */
  private changed(pool: string, { answers, servers, more, ...reply }: ServerChange): ServerChangeReply {
    this.waiters.sendAll(pool, { answers, servers, more });
    this.sweeper.soon(pool);
    return reply;
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async fence(pool: string, { serverId, epoch, reason }: FenceServerRequest): Promise<FenceServerReply> {
    const reply = await this.store.fence(pool, { serverId, epoch, reason });
    if (reply.changed) {
      this.metrics.serversFenced.inc({ pool });
      this.logger.warn({ pool, serverId, epoch, reason }, 'A server was fenced; its leases have expired');
      this.sweeper.soon(pool);
    }
    return reply;
  }

  /** Cordons and fences a server. A repeat completes a quarantine that stopped between the two transitions. */
  async quarantine(pool: string, { serverId, reason }: QuarantineServerRequest): Promise<FenceServerReply> {
    const { epoch } = await this.cordon(pool, serverId, true);
    return this.fence(pool, { serverId, epoch, reason });
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED, UNAVAILABLE */
  async reconcile(pool: string, request: ReconcileServerRequest): Promise<ReconcileServerReply> {
    const { answers, servers, more, ...reply } = await this.store.reconcile(pool, request);
    this.waiters.sendAll(pool, { answers, servers, more });
    return reply;
  }
}
