import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { isBroomwagonError, type ServerId, type ServerState, type ServerStatus } from '@broomwagon/contracts';
import { NO_VERSION } from '@broomwagon/engines';
import { Alarms, InEachPool } from '@broomwagon/platform';
import { adaptiveLimit } from '@broomwagon/policies';
import {
  pagesOf,
  ServerStore,
  type DueLimit,
  type EngineReport,
  type HeartbeatResult,
  type LoadReport,
  type ServerChange,
  type ServerUpdate,
} from '@broomwagon/state';
import { PoolCoalescers } from '../acquire/pool-coalescers';
import { WaiterAnswersService } from '../acquire/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from '../upkeep/sweep.service';
import { EngineHealth } from './engine-health';
import { missingFeatures } from './missing-features';
import { PrefixCachesService } from './prefix-caches.service';
import { ProbeLanes, type ProbedServer } from './probe-lanes';

/** Maximum time of a prompt answer. */
const MOST_ROUND_MS = 1_000;
/** Maximum time that a registration waits for the first answer. */
const FIRST_PROBE_MS = 1_000;
/** Engines whose capabilities are read at once; the others follow in the next rounds. */
const DESCRIBED_AT_ONCE = 8;

/**
 * Probes servers: an answer counts as a heartbeat, and a transition marks silent servers. So all replicas may probe at
 * once, and a replica that cannot reach an engine does not make its server suspect.
 */
@Injectable()
export class ProbeService implements OnModuleDestroy {
  private readonly logger = new Logger(ProbeService.name);
  private readonly probes: ProbeLanes<ServerStatus>;
  private readonly late = new PoolCoalescers<ServerId, void>(async (pool, ids) => {
    await this.recordProbes(pool, [...new Set(ids)]);
    return ids.map(() => undefined);
  });
  private readonly describing = new Set<string>();
  private readonly recording = new Set<string>();
  /** Half the interval at most. */
  private readonly roundMs: number;
  private stopped = false;

  constructor(
    private readonly servers: ServerStore,
    private readonly health: EngineHealth,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly metrics: LoadBalancerMetrics,
    private readonly caches: PrefixCachesService,
    private readonly alarms: Alarms,
    private readonly config: LoadBalancerConfig,
  ) {
    this.roundMs = Math.min(config.probeIntervalMs / 2, MOST_ROUND_MS);
    const patience = { fastMs: this.roundMs, slowMs: Math.max(this.roundMs, config.serverFailedAfterMs / 2) };
    this.probes = new ProbeLanes(health, patience, (pool, serverId) => {
      this.late
        .add(pool, serverId)
        .catch((error: unknown) =>
          this.logger.warn({ err: error, pool, serverId }, 'A late answer of an engine was not recorded'),
        );
    });
  }

  onModuleDestroy(): void {
    this.stopped = true;
  }

  /** Probes every server of the pool once, then reviews the silent ones. */
  @InEachPool('probe', (config: LoadBalancerConfig) => config.probeIntervalMs)
  async probe(pool: string): Promise<void> {
    const probed: ServerStatus[] = [];
    const loads: Promise<LoadReport | undefined>[] = [];
    for await (const page of this.servers.pages('list', pool)) {
      for (const servers of pagesOf(page.servers)) {
        // A server with `probe: false` counts as answering.
        const asked = servers.filter(({ probe }) => probe !== false);
        const answered = await this.probes.ask(pool, asked);
        const ready = [...answered, ...servers.filter(({ probe }) => probe === false)];
        if (ready.length > 0) await this.recordProbes(pool, [...new Set(ready.map(({ serverId }) => serverId))]);
        loads.push(...answered.map((server) => this.reportOf(pool, server)));
        this.describeSome(pool, answered);
        probed.push(...asked);
      }
    }
    this.probes.askSlow(pool, probed);
    await this.review(pool);
    await this.storeLoads(pool, await Promise.all(loads));
  }

  /**
   * Probes a server that has just been registered. @returns its state after a second at most
   */
  async first(pool: string, server: ProbedServer): Promise<ServerState> {
    if (!(await this.probes.answers(pool, server, FIRST_PROBE_MS))) return 'pending';
    return (await this.recordProbes(pool, [server.serverId]))?.states[server.serverId] ?? 'pending';
  }

  /** Never throws: the round waits for it only at its end. */
  private async reportOf(pool: string, server: ServerStatus): Promise<LoadReport | undefined> {
    const { load, ...report } = await this.health.report({ ...server, pool }, this.roundMs);
    if (this.stopped) return undefined;
    if (isNews(server, report)) {
      const message = 'The report of an engine was not recorded; the next probe repeats it';
      this.inBackground(this.recording, pool, server, () => this.recordReport(pool, server, report), message);
    }
    return load && { serverId: server.serverId, epoch: server.epoch, ...load };
  }

  /** Records that an engine has restarted, or that it reports another weight version than before. */
  private async recordReport(pool: string, server: ServerStatus, report: EngineReport): Promise<void> {
    const { serverId, epoch, weightVersion: before, engineWeightVersion: knownWeightVersion } = server;
    const { weightVersion = NO_VERSION } = report;
    if (namesWeights(server, weightVersion) && !(await this.caches.mayTake(pool, serverId, weightVersion))) return;
    const change = await this.changed(pool, { serverId, epoch, report: { ...report, knownWeightVersion } });
    if (change === undefined) return;
    if (change.epoch !== epoch) {
      this.logger.warn({ pool, serverId, ...report }, 'An engine has restarted: its leases have expired');
      this.sweeper.soon(pool);
    } else if (weightVersion !== (knownWeightVersion ?? NO_VERSION)) {
      this.logger.log({ pool, serverId, before, ...report }, 'An engine reports another weight version');
    }
  }

  /** Undefined when the server was removed or registered again meanwhile; the next round probes it again. */
  private async changed(pool: string, update: ServerUpdate): Promise<ServerChange | undefined> {
    try {
      const change = await this.servers.update(pool, update);
      this.waiters.sendAll(pool, change);
      return change;
    } catch (error) {
      if (isBroomwagonError(error, 'FENCED') || isBroomwagonError(error, 'SERVER_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  /** Stores load reports, counts their drift, and adapts limits in pools with adaptive concurrency. */
  private async storeLoads(pool: string, loads: (LoadReport | undefined)[]): Promise<void> {
    const drifts: number[] = [];
    for (const reports of pagesOf(loads.filter((load) => load !== undefined))) {
      const reply = await this.servers.reportLoads(pool, { reports });
      drifts.push(...reply.drifts.map(({ drift }) => drift));
      const limits = reply.due.flatMap((due: DueLimit) => {
        const to = adaptiveLimit(due);
        return to === due.limit ? [] : [{ serverId: due.serverId, epoch: due.epoch, from: due.limit, to }];
      });
      if (limits.length > 0) this.waiters.sendAll(pool, await this.servers.limit(pool, { limits }));
    }
    this.metrics.drift(pool, drifts);
  }

  private async recordProbes(pool: string, serverIds: ServerId[]): Promise<HeartbeatResult | undefined> {
    if (this.stopped) return undefined;
    const reply = await this.servers.recordProbes(pool, serverIds);
    for (const serverId of reply.revived) {
      this.logger.log({ pool, serverId }, 'A failed server has come back with a new epoch');
    }
    this.waiters.sendAll(pool, reply);
    return reply;
  }

  /**
   * Runs the work once at a time for each server, in the background, so that slow engines do not delay the round.
   */
  private inBackground(
    busy: Set<string>,
    pool: string,
    server: ServerStatus,
    work: () => Promise<void>,
    whenItFails: string,
  ): void {
    const name = `${pool} ${server.serverId}`;
    if (busy.has(name)) return;
    busy.add(name);
    work()
      .catch((error: unknown) => this.logger.warn({ err: error, pool, ...server }, whenItFails))
      .finally(() => busy.delete(name));
  }

  /** Reads the capabilities of engines that were registered without them. */
  private describeSome(pool: string, servers: readonly ServerStatus[]): void {
    for (const server of servers) {
      if (server.capabilities !== undefined || this.describing.size >= DESCRIBED_AT_ONCE) continue;
      this.inBackground(
        this.describing,
        pool,
        server,
        () => this.describe(pool, server),
        'An engine was not described',
      );
    }
  }

  private async describe(pool: string, server: ServerStatus): Promise<void> {
    const capabilities = await this.health.capabilities({ ...server, pool });
    if (capabilities === undefined || this.stopped) return;
    const { serverId, epoch } = server;
    await this.changed(pool, { serverId, epoch, capabilities, lacks: missingFeatures(capabilities) });
  }

  /** Two missed probes make a server suspect; a late answer makes it ready again. */
  private async review(pool: string): Promise<void> {
    const limits = {
      suspectAfterMs: 2 * this.config.probeIntervalMs,
      failedAfterMs: Math.max(2 * this.config.probeIntervalMs, this.config.serverFailedAfterMs),
    };
    let isFirst = true;
    for await (const reply of this.servers.pages('review', pool, limits)) {
      this.waiters.sendAll(pool, reply);
      for (const serverId of reply.suspected)
        this.logger.warn({ pool, serverId }, 'A server is silent and now suspect');
      for (const serverId of reply.failed)
        this.logger.error({ pool, serverId }, 'A server has failed; its leases have expired');
      if (reply.suspected.length + reply.failed.length > 0) this.sweeper.soon(pool);
      if (isFirst) {
        const { held, silent, watched } = reply;
        const message = 'Most servers fell silent at once: they stay in use';
        this.alarms.look(pool, 'servers', held ? 'servers-silent' : undefined, message, { silent, watched });
      }
      isFirst = false;
    }
  }
}

/** Whether the report differs from what is stored of the server. */
function isNews(server: ServerStatus, { startedAtSeconds, weightVersion }: EngineReport): boolean {
  const { engineStartedAtSeconds, engineWeightVersion, unconfirmedWeightVersion } = server;
  const isOtherStart = startedAtSeconds !== undefined && startedAtSeconds > (engineStartedAtSeconds ?? 0);
  const isSameStart = startedAtSeconds !== undefined && startedAtSeconds === engineStartedAtSeconds;
  const isConfirmed =
    unconfirmedWeightVersion !== undefined && (isSameStart || weightVersion === unconfirmedWeightVersion);
  const isOtherVersion = weightVersion !== undefined && weightVersion !== engineWeightVersion;
  return isOtherStart || isConfirmed || isOtherVersion;
}

/**
 * Whether the report changes the weight version of the server; the first report after a trainer named it does not.
 */
function namesWeights(server: ServerStatus, version: number): boolean {
  const { engineWeightVersion: known, weightVersion, unconfirmedWeightVersion } = server;
  const isNamed = weightVersion > 0 || unconfirmedWeightVersion !== undefined;
  return version >= 0 && (known === undefined ? !isNamed : version !== known);
}
