import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Alarms, Metrics, PeriodicTask } from '@broomwagon/platform';
import { PoolDirectory, RoutingStore, ServerStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../acquire/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { PoolSettingsService } from '../pool/pool-settings.service';
import { EnginePausesService } from '../servers/engine-pauses.service';
import { ProbeService } from '../servers/probe.service';
import { SweepService } from './sweep.service';

/** Waiters are answered this late at most. */
const WAITERS_INTERVAL_MS = 100;
/** When the weights have changed, engines go on this late at most. */
const ENGINES_INTERVAL_MS = 100;
const SESSIONS_INTERVAL_MS = 30_000;
const POOLS_INTERVAL_MS = 5_000;
/** Servers of a sleeping pool have failed; they are asked this often whether they are back. */
const SLEEPING_INTERVAL_MS = 30_000;
const TOTALS_INTERVAL_MS = 5_000;
/** A change of settings that a dying replica left behind goes on after this. */
const SETTINGS_INTERVAL_MS = 2_000;
/** Without a look at workers for this long nobody can tell late ones from an outage. */
const OUTAGE_AFTER_MS = 10_000;

/** What is done again and again in each pool. Every run is safe in all replicas at once. */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(UpkeepService.name);
  private readonly tasks: PeriodicTask[];
  /** Pools that have gauges. */
  private shown: readonly string[] = [];

  constructor(
    private readonly store: RoutingStore,
    private readonly servers: ServerStore,
    private readonly directory: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly settings: PoolSettingsService,
    private readonly prober: ProbeService,
    private readonly pauses: EnginePausesService,
    private readonly counts: LoadBalancerMetrics,
    private readonly alarms: Alarms,
    private readonly config: LoadBalancerConfig,
    private readonly metrics: Metrics,
  ) {
    const inEachPool = (name: string, intervalMs: number, work: (pool: string) => Promise<void>) =>
      new PeriodicTask({ name, intervalMs, metrics, immediately: true }, (signal) => this.inEachPool(work, signal));
    this.tasks = [
      inEachPool('expire-waiters', WAITERS_INTERVAL_MS, (pool) => this.expireWaiters(pool)),
      inEachPool('expire-workers', config.upkeepIntervalMs, (pool) => this.expireWorkers(pool)),
      inEachPool('sweep', config.upkeepIntervalMs, (pool) => this.sweeper.sweep(pool)),
      inEachPool('end-drains', config.upkeepIntervalMs, (pool) => this.endDrains(pool)),
      inEachPool('warm-servers', config.upkeepIntervalMs, async (pool) =>
        this.waiters.sendAll(pool, await this.servers.warm(pool)),
      ),
      inEachPool('probe', config.probeIntervalMs, (pool) => this.prober.probe(pool)),
      inEachPool('engine-pauses', ENGINES_INTERVAL_MS, (pool) => this.pauses.tell(pool)),
      inEachPool('settings', SETTINGS_INTERVAL_MS, (pool) => this.settings.resume(pool)),
      inEachPool('evict-sessions', SESSIONS_INTERVAL_MS, (pool) => this.evictSessions(pool)),
      new PeriodicTask({ name: 'pools', intervalMs: POOLS_INTERVAL_MS, metrics }, () => this.reviewPools()),
      new PeriodicTask({ name: 'sleeping-pools', intervalMs: SLEEPING_INTERVAL_MS, metrics, immediately: true }, () =>
        this.reviewSleeping(),
      ),
      inEachPool('totals', TOTALS_INTERVAL_MS, async (pool) => this.counts.totals(pool, await this.store.status(pool))),
    ];
  }

  onApplicationBootstrap(): void {
    for (const task of this.tasks) task.start();
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.stop()));
  }

  /** All pools, also when one fails; then the first error is thrown at the end. */
  private async inEachPool(work: (pool: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const pools = await this.pools();
    const errors: unknown[] = [];
    for (const pool of pools) {
      if (signal.aborted) return;
      await work(pool).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }

  private async reviewPools(): Promise<void> {
    await this.directory.review();
    const pools = await this.pools();
    for (const pool of this.shown) if (!pools.includes(pool)) await this.metrics.forget('pool', pool);
    this.shown = pools;
  }

  private async reviewSleeping(): Promise<void> {
    await this.directory.reviewAsleep();
    if (this.config.servedPools() !== '*') return;
    for (const pool of await this.directory.asleep()) {
      if ((await this.directory.activityOf(pool)).servers > 0) await this.prober.probe(pool);
    }
  }

  private async pools(): Promise<readonly string[]> {
    const served = this.config.servedPools();
    return served === '*' ? this.directory.awake() : served;
  }

  private async expireWaiters(pool: string): Promise<void> {
    let reply;
    do {
      reply = await this.store.expireWaiters(pool);
      this.waiters.send(reply);
    } while (reply.more);
    // Room and a waiter never meet without a grant, unless a process died in between.
    if (reply.waiting > 0) await this.waiters.grant(pool);
  }

  private async expireWorkers(pool: string): Promise<void> {
    let more = true;
    while (more) {
      const reply = await this.store.expireWorkers(pool, OUTAGE_AFTER_MS);
      more = reply.more;
      const alarm = reply.held && `workers-${reply.held}`;
      this.alarms.look(pool, 'workers', alarm, 'No worker expires for one time to live');
      if (reply.expired.length === 0) continue;
      this.counts.workersExpired(reply.expired.length);
      this.logger.warn({ pool, workers: reply.expired }, 'Workers were silent: their leases have expired');
      this.sweeper.soon(pool);
    }
  }

  private async endDrains(pool: string): Promise<void> {
    let offset: number | undefined = 0;
    while (offset !== undefined) {
      const { removed, next }: Awaited<ReturnType<ServerStore['endDrains']>> = await this.servers.endDrains(
        pool,
        offset,
      );
      for (const { serverId, leases } of removed) {
        this.logger.log({ pool, serverId, leases }, 'A drained server was removed; its remaining leases have expired');
      }
      if (removed.length > 0) this.sweeper.soon(pool);
      offset = next;
    }
  }

  private async evictSessions(pool: string): Promise<void> {
    let more = true;
    while (more) ({ more } = await this.store.evictSessions(pool, this.config.sessionIdleMs));
  }
}
