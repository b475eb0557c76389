import { Injectable, Logger } from '@nestjs/common';
import { Alarms, InEachPool, Periodically } from '@broomwagon/platform';
import { PoolDirectory, PoolStore, ServerStore, SessionStore, WorkerStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from './sweep.service';

const SESSIONS_INTERVAL_MS = 30_000;
const POOLS_INTERVAL_MS = 5_000;
const SLEEPING_INTERVAL_MS = 30_000;
const TOTALS_INTERVAL_MS = 5_000;
/** After this time without a check of workers, milliseconds, no worker expires: an outage may have silenced all. */
const OUTAGE_AFTER_MS = 10_000;
const upkeepInterval = (config: LoadBalancerConfig): number => config.upkeepIntervalMs;

/** Periodic work on workers, drained servers, sessions and pools. */
@Injectable()
export class UpkeepService {
  private readonly logger = new Logger(UpkeepService.name);

  constructor(
    private readonly pools: PoolStore,
    private readonly workers: WorkerStore,
    private readonly sessions: SessionStore,
    private readonly servers: ServerStore,
    private readonly directory: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
    private readonly metrics: LoadBalancerMetrics,
    private readonly alarms: Alarms,
    private readonly config: LoadBalancerConfig,
  ) {}

  @Periodically('pools', POOLS_INTERVAL_MS)
  reviewPools(): Promise<void> {
    return this.directory.review();
  }

  @Periodically('sleeping-pools', SLEEPING_INTERVAL_MS, { isImmediate: true })
  reviewSleeping(): Promise<void> {
    return this.directory.reviewAsleep();
  }

  @InEachPool('totals', TOTALS_INTERVAL_MS)
  async showTotals(pool: string): Promise<void> {
    this.metrics.totals(pool, await this.pools.status(pool));
  }

  /** Ends a pause of the pool at its deadline. EnginePausesService resumes the engines. */
  @InEachPool('end-pauses', upkeepInterval)
  async endPauses(pool: string): Promise<void> {
    const { paused: _, changed, ...waiting } = await this.pools.pause(pool, { paused: false, overdueOnly: true });
    if (!changed) return;
    this.waiters.sendAll(pool, waiting);
    this.metrics.pausesOverdue.inc({ pool });
    this.logger.error({ pool }, 'The pool was paused until the deadline of the pause: pool and engines are resumed');
  }

  @InEachPool('warm-servers', upkeepInterval)
  async warmServers(pool: string): Promise<void> {
    this.waiters.sendAll(pool, await this.servers.warm(pool));
  }

  @InEachPool('expire-workers', upkeepInterval)
  async expireWorkers(pool: string): Promise<void> {
    for await (const reply of this.workers.whileMore('expire', pool, { gapMs: OUTAGE_AFTER_MS })) {
      const alarm = reply.held && `workers-${reply.held}`;
      this.alarms.look(pool, 'workers', alarm, 'No worker expires for one time to live');
      if (reply.expired.length === 0) continue;
      this.metrics.workersExpired.inc({ pool }, reply.expired.length);
      this.logger.warn({ pool, workers: reply.expired }, 'Workers were silent: their leases have expired');
      this.sweeper.soon(pool);
    }
  }

  @InEachPool('end-drains', upkeepInterval)
  async endDrains(pool: string): Promise<void> {
    for await (const { removed } of this.servers.pages('endDrains', pool)) {
      for (const { serverId, leases } of removed) {
        this.logger.log({ pool, serverId, leases }, 'A drained server was removed; its remaining leases have expired');
      }
      if (removed.length > 0) this.sweeper.soon(pool);
    }
  }

  @InEachPool('evict-sessions', SESSIONS_INTERVAL_MS)
  async evictSessions(pool: string): Promise<void> {
    const pages = this.sessions.whileMore('evict', pool, { idleMs: this.config.sessionIdleMs });
    while (!(await pages.next()).done);
  }
}
