import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { outages, type ServerState, type ServerStatus } from '@broomwagon/contracts';
import { Alarms, InEachPool } from '@broomwagon/platform';
import { adaptiveLimit } from '@broomwagon/policies';
import { splitPages, ServerStore, type DueLimit, type HeartbeatResult, type LoadReport } from '@broomwagon/state';
import { PoolCoalescers } from '../coalescing/pool-coalescers';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from '../upkeep/sweep.service';
import { EngineHealth } from './engine-health';
import { EngineRecordsService } from './engine-records.service';
import { ProbeLanes, type ProbedServer } from './probe-lanes';
import { ServerCounts, ServerGauges } from './server-gauges';

/** Upper limit of `roundMs`, milliseconds. */
const MAX_ROUND_MS = 1_000;
/** Maximum time that a registration waits for the first answer, milliseconds. */
const FIRST_PROBE_MS = 1_000;
/** Minimum time between two probes out of turn, milliseconds. */
const SOON_MS = 500;

/** Name of an engine in the log of outages. */
function nameEngine(pool: string, serverId: string): string {
  return `engine ${serverId} of pool ${pool}`;
}

/**
 * Probes servers. An answer to any replica counts as a heartbeat, and only a transition marks silent servers. So all
 * replicas may probe at once, and a replica that alone cannot reach an engine does not make its server suspect.
 */
@Injectable()
export class ProbeService implements OnModuleDestroy {
  private readonly logger = new Logger(ProbeService.name);
  private readonly probes: ProbeLanes<ServerStatus>;
  private readonly late = new PoolCoalescers<ProbedServer, void>(async (pool, servers) => {
    await this.recordProbes(pool, servers);
    return servers.map(() => undefined);
  });
  /** Maximum time of a probe in the fast lane: at most half the probe interval. */
  private readonly roundMs: number;
  /** Pools that were probed out of turn within the last {@link SOON_MS}. */
  private readonly probedSoon = new Set<string>();
  private stopped = false;

  constructor(
    private readonly servers: ServerStore,
    health: EngineHealth,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly metrics: LoadBalancerMetrics,
    private readonly records: EngineRecordsService,
    private readonly alarms: Alarms,
    private readonly config: LoadBalancerConfig,
    private readonly gauges: ServerGauges,
  ) {
    this.roundMs = Math.min(config.probeIntervalMs / 2, MAX_ROUND_MS);
    const patience = { fastMs: this.roundMs, slowMs: Math.max(this.roundMs, config.serverFailedAfterMs / 2) };
    this.probes = new ProbeLanes(health, patience, (pool, server) => {
      this.late
        .add(pool, server)
        .catch((error: unknown) =>
          this.logger.warn(
            { err: error, pool, serverId: server.serverId },
            'A late answer of an engine was not recorded',
          ),
        );
    });
  }

  onModuleDestroy(): void {
    this.stopped = true;
  }

  /**
   * Probes the servers of the pool once, then reviews silent servers. A server whose load another replica has just read
   * is left out: then the number of probes does not grow with the number of replicas.
   */
  @InEachPool('probe', (config: LoadBalancerConfig) => config.probeIntervalMs)
  probe(pool: string): Promise<void> {
    return this.probeAll(pool, this.config.probeIntervalMs / 2);
  }

  /** @param minAgeMs age of the load report from which a server is probed */
  private async probeAll(pool: string, minAgeMs: number): Promise<void> {
    const probed: ServerStatus[] = [];
    const counts = new ServerCounts();
    let unknown = 0;
    const loads: Promise<LoadReport | undefined>[] = [];
    for await (const page of this.servers.pages('list', pool)) {
      counts.add(page.servers);
      for (const { serverId, state } of page.servers) if (state === 'ready') outages.end(nameEngine(pool, serverId));
      unknown += page.servers.filter(({ weightsUnknown }) => weightsUnknown === true).length;
      for (const servers of splitPages(page.servers)) {
        // A server with `probe: false` counts as answering.
        const asked = servers.filter(({ probe }) => probe !== false);
        const due = asked.filter(({ load }) => load === undefined || load.ageMs >= minAgeMs);
        const answered = await this.probes.ask(pool, due);
        const ready = [...answered, ...servers.filter(({ probe }) => probe === false)];
        if (ready.length > 0) await this.recordProbes(pool, ready);
        loads.push(...answered.map((server) => this.records.report(pool, server, this.roundMs)));
        this.records.describeAll(
          pool,
          answered.filter(({ capabilities }) => capabilities === undefined),
        );
        probed.push(...asked);
      }
    }
    this.gauges.show(pool, counts);
    this.metrics.unknownWeights.set({ pool }, unknown);
    const message =
      'Servers take no leases, since their weights are unknown: report the version of each, or load again';
    this.alarms.look(pool, 'weights', unknown > 0 ? 'weights-unknown' : undefined, message, { servers: unknown });
    this.probes.askSlow(pool, probed);
    await this.review(pool, new Map(probed.map(({ serverId, endpoint }) => [serverId, endpoint])));
    await this.storeLoads(pool, await Promise.all(loads));
  }

  /** Probes every server of the pool out of turn: most servers fail calls now. */
  soon(pool: string): void {
    if (this.stopped || this.probedSoon.has(pool)) return;
    this.probedSoon.add(pool);
    setTimeout(() => this.probedSoon.delete(pool), SOON_MS).unref();
    this.probeAll(pool, 0).catch((error: unknown) => this.logger.warn({ err: error, pool }, 'The probes failed'));
  }

  /** Probes a server that has just been registered, for a second at most. @returns the state of the server */
  async first(pool: string, server: ProbedServer): Promise<ServerState> {
    const end = new AbortController();
    const late = delay(FIRST_PROBE_MS, 'pending' as const, { signal: end.signal }).catch(() => 'pending' as const);
    const first = async (): Promise<ServerState> => {
      if (!(await this.probes.answers(pool, server, FIRST_PROBE_MS))) return 'pending';
      return (await this.records.describe(pool, server)) ?? 'pending';
    };
    const state = await Promise.race([first(), late]);
    end.abort();
    return state;
  }

  /** Stores load reports, counts their drift, and adapts limits in pools with adaptive concurrency. */
  private async storeLoads(pool: string, loads: (LoadReport | undefined)[]): Promise<void> {
    const drifts: number[] = [];
    for (const reports of splitPages(loads.filter((load) => load !== undefined))) {
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

  /** Records answers as heartbeats. @returns the states of the servers that are registered */
  private async recordProbes(pool: string, servers: readonly ProbedServer[]): Promise<HeartbeatResult | undefined> {
    if (this.stopped) return undefined;
    const reply = await this.servers.recordProbes(pool, [...new Set(servers.map(({ serverId }) => serverId))]);
    this.waiters.sendAll(pool, reply);
    const unproven = new Set(reply.unproven);
    this.records.describeAll(
      pool,
      servers.filter(({ serverId }) => unproven.has(serverId)),
    );
    return reply;
  }

  /** Reviews silent servers: two missed probes make a server suspect, and a later answer makes the server ready. */
  private async review(pool: string, endpoints: ReadonlyMap<string, string>): Promise<void> {
    const limits = {
      suspectAfterMs: 2 * this.config.probeIntervalMs,
      failedAfterMs: Math.max(2 * this.config.probeIntervalMs, this.config.serverFailedAfterMs),
      silentAfterMs: this.config.serverSilentAfterMs,
    };
    let isFirst = true;
    for await (const reply of this.servers.pages('review', pool, limits)) {
      this.waiters.sendAll(pool, reply);
      for (const serverId of [...reply.suspected, ...reply.failed]) {
        const ids = { pool, serverId, endpoint: endpoints.get(serverId) ?? 'unknown' };
        const cause = `${ids.endpoint} did not answer two probes; the server is suspect`;
        outages.begin({ name: nameEngine(pool, serverId), ids, isLeaf: true }, cause);
      }
      for (const serverId of reply.failed)
        this.logger.error({ pool, serverId }, 'A server has failed; its leases have expired');
      const hung = reply.hung.filter((server) => !server.held);
      for (const server of hung) {
        this.metrics.serversHung.inc({ pool });
        const message = 'Calls got no tokens though the engine answers: they move, and the server is suspect';
        this.logger.error({ pool, serverId: server.serverId, silentMs: server.silentMs }, message);
      }
      if (reply.suspected.length + reply.failed.length + hung.length > 0) this.sweeper.soon(pool);
      if (isFirst) {
        const { held, silent, watched } = reply;
        const message = 'Most servers fell silent at once: they stay in use';
        this.alarms.look(pool, 'servers', held ? 'servers-silent' : undefined, message, { silent, watched });
        const kept = reply.hung.filter((server) => server.held).map(({ serverId }) => serverId);
        const says = 'Calls get no tokens though the engines answer: they stay, since too few other servers are left';
        this.alarms.look(pool, 'hung', kept.length > 0 ? 'servers-hung' : undefined, says, { servers: kept });
      }
      isFirst = false;
    }
  }
}
