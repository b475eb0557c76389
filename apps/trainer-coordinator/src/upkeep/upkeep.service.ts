import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { Metrics, PeriodicTask } from '@broomwagon/platform';
import { PayloadStore, PoolDirectory, RoundStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { FactRelayService } from '../facts/fact-relay.service';
import { RebalanceWatchService } from '../rebalance/rebalance-watch.service';
import { LedgerMetrics } from '../ledger/ledger.metrics';
import { LedgerService } from '../ledger/ledger.service';
import { PayloadRoomService } from '../payload/payload-room.service';
import { GrantService } from '../requests/grant.service';
import { SweepService } from './sweep.service';

const FACTS_INTERVAL_MS = 200;
const PAYLOAD_ROOM_INTERVAL_MS = 1_000;
const TOTALS_INTERVAL_MS = 5_000;
const ORPHANS_INTERVAL_MS = 60_000;

/** What is done again and again in each pool. Every run is safe in all replicas at once. */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly tasks: PeriodicTask[];

  constructor(
    private readonly directory: PoolDirectory,
    private readonly rounds: RoundStore,
    private readonly payloads: PayloadStore,
    private readonly counts: CoordinatorMetrics,
    private readonly ledgers: LedgerService,
    private readonly ledgerMetrics: LedgerMetrics,
    private readonly config: CoordinatorConfig,
    sweeper: SweepService,
    grants: GrantService,
    relay: FactRelayService,
    rebalance: RebalanceWatchService,
    room: PayloadRoomService,
    metrics: Metrics,
  ) {
    const inEachPool = (name: string, intervalMs: number, work: (pool: PoolName) => Promise<void>) =>
      new PeriodicTask({ name, intervalMs, metrics }, (signal) => this.inEachPool(work, signal));
    this.tasks = [
      inEachPool('sweep', config.sweepIntervalMs, (pool) => sweeper.sweep(pool)),
      inEachPool('claims', config.sweepIntervalMs, (pool) => grants.upkeep(pool)),
      inEachPool('rebalance', config.rebalanceCheckMs, (pool) => rebalance.look(pool)),
      inEachPool('payload-room', PAYLOAD_ROOM_INTERVAL_MS, (pool) => room.lookAtAll(pool)),
      inEachPool('totals', TOTALS_INTERVAL_MS, (pool) => this.readTotals(pool)),
      new PeriodicTask({ name: 'orphans', intervalMs: ORPHANS_INTERVAL_MS, metrics }, () => this.sweepOrphans()),
    ];
    if (config.factsRelay) {
      this.tasks.push(inEachPool('facts', FACTS_INTERVAL_MS, (pool) => relay.relay(pool)));
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
    return served === '*' ? this.directory.list() : served;
  }

  private async readTotals(pool: PoolName): Promise<void> {
    const jobs = await this.rounds.listJobs(pool, false);
    const statuses = [];
    for (const job of jobs) {
      statuses.push(await this.rounds.jobStatus(pool, job));
      this.ledgerMetrics.show(pool, job, await this.ledgers.read(pool, job));
    }
    this.counts.totals(pool, statuses);
  }

  /** The payloads of all pools, also of those that this replica does not serve. */
  private async sweepOrphans(): Promise<void> {
    await this.payloads.sweepOrphans(this.config.payloadOrphanAfterMs, ({ pool, job, owner }) =>
      this.rounds.owns(pool, job, owner),
    );
  }
}
