import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { Metrics, PeriodicTask } from '@broomwagon/platform';
import { PoolDirectory } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { EventRelayService } from '../events/event-relay.service';
import { RebalanceWatchService } from '../rebalance/rebalance-watch.service';
import { OrphanSweepService } from '../payload/orphan-sweep.service';
import { PayloadRemovalService } from '../payload/payload-removal.service';
import { PayloadRoomService } from '../payload/payload-room.service';
import { DeletionService } from '../jobs/deletion.service';
import { GrantService } from '../requests/grant.service';
import { JobTotals } from './job-totals';
import { RecountService } from './recount.service';
import { SweepService } from './sweep.service';

/** Looks for payloads to remove, in pauses of the sweep. */
const SWEEPS_PER_REMOVAL = 10;
const EVENTS_INTERVAL_MS = 200;
const PAYLOAD_ROOM_INTERVAL_MS = 1_000;
/** Not within the sweep, which must not wait for a look at all keys. */
const RECOUNTS_INTERVAL_MS = 1_000;
const POOLS_INTERVAL_MS = 5_000;
const SLEEPING_INTERVAL_MS = 30_000;
const IDLE_INTERVAL_MS = 3_600_000;
const TOTALS_INTERVAL_MS = 5_000;
const ORPHANS_INTERVAL_MS = 60_000;

/** What is done again and again in each pool. Every run is safe in all replicas at once. */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly tasks: PeriodicTask[];
  /** Pools that have gauges. */
  private shown: readonly PoolName[] = [];

  constructor(
    private readonly directory: PoolDirectory,
    private readonly totals: JobTotals,
    private readonly deletions: DeletionService,
    private readonly config: CoordinatorConfig,
    sweeper: SweepService,
    grants: GrantService,
    removals: PayloadRemovalService,
    orphans: OrphanSweepService,
    relay: EventRelayService,
    rebalance: RebalanceWatchService,
    room: PayloadRoomService,
    recounts: RecountService,
    private readonly metrics: Metrics,
  ) {
    const inEachPool = (name: string, intervalMs: number, work: (pool: PoolName) => Promise<void>) =>
      new PeriodicTask({ name, intervalMs, metrics }, (signal) => this.inEachPool(work, signal));
    this.tasks = [
      inEachPool('sweep', config.sweepIntervalMs, (pool) => sweeper.sweep(pool)),
      inEachPool('claims', config.sweepIntervalMs, (pool) => grants.upkeep(pool)),
      inEachPool('rebalance', config.rebalanceCheckMs, (pool) => rebalance.look(pool)),
      inEachPool('removals', SWEEPS_PER_REMOVAL * config.sweepIntervalMs, (pool) => removals.sweep(pool)),
      inEachPool('payload-room', PAYLOAD_ROOM_INTERVAL_MS, (pool) => room.lookAtAll(pool)),
      inEachPool('recounts', RECOUNTS_INTERVAL_MS, (pool) => recounts.recount(pool)),
      inEachPool('totals', TOTALS_INTERVAL_MS, (pool) => this.totals.read(pool)),
      new PeriodicTask({ name: 'pools', intervalMs: POOLS_INTERVAL_MS, metrics }, () => this.directory.review()),
      new PeriodicTask({ name: 'sleeping-pools', intervalMs: SLEEPING_INTERVAL_MS, metrics, immediately: true }, () =>
        this.directory.reviewAsleep(),
      ),
      new PeriodicTask({ name: 'forget-sleeping', intervalMs: POOLS_INTERVAL_MS, metrics }, () =>
        this.forgetSleeping(),
      ),
      new PeriodicTask({ name: 'delete-idle', intervalMs: IDLE_INTERVAL_MS, metrics }, () => this.deleteIdle()),
      new PeriodicTask({ name: 'orphans', intervalMs: ORPHANS_INTERVAL_MS, metrics }, () => orphans.sweep()),
    ];
    if (config.eventsRelay) {
      this.tasks.push(inEachPool('events', EVENTS_INTERVAL_MS, (pool) => relay.relay(pool)));
    }
  }

  onApplicationBootstrap(): void {
    for (const task of this.tasks) task.start();
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.stop()));
  }

  /** All pools, also when one fails; then the first error is thrown at the end. */
  private async inEachPool(work: (pool: PoolName) => Promise<void>, signal: AbortSignal): Promise<void> {
    const errors: unknown[] = [];
    for (const pool of await this.pools()) {
      if (signal.aborted) return;
      await work(pool).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }

  private async pools(): Promise<readonly PoolName[]> {
    const served = this.config.servedPools();
    return served === '*' ? this.directory.awake() : served;
  }

  private async forgetSleeping(): Promise<void> {
    const pools = await this.pools();
    this.totals.keepOnly(pools);
    for (const pool of this.shown) if (!pools.includes(pool)) await this.metrics.forget('pool', pool);
    this.shown = pools;
  }

  private async deleteIdle(): Promise<void> {
    const served = this.config.servedPools();
    for (const pool of served === '*' ? await this.directory.list() : served) await this.deletions.deleteIdle(pool);
  }
}
