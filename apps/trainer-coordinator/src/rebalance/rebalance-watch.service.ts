import { Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { PoolName, RebalanceSettings } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { PlanSchedule, type RebalanceTrigger } from '@broomwagon/policies';
import { MoveStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { MoveSenderService } from './move-sender.service';
import { RebalanceService } from './rebalance.service';

interface WatchedPool {
  schedule: PlanSchedule;
  /** Time of the last plan that the schedule knows, by the clock of Redis. */
  plannedAtMs?: number;
}

/**
 * Plans after triggers, in pools whose rebalancer is not off. Every replica checks for triggers. A turn in Redis lets
 * one replica plan, at a minimum interval; the other replicas read the time of the plan in Redis.
 */
@Injectable()
export class RebalanceWatchService {
  private readonly logger = new Logger(RebalanceWatchService.name);
  private readonly watched = new Map<PoolName, WatchedPool>();

  constructor(
    private readonly store: MoveStore,
    private readonly rebalance: RebalanceService,
    private readonly sender: MoveSenderService,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  @InEachPool('rebalance', (config: CoordinatorConfig) => config.rebalanceCheckMs)
  async look(pool: PoolName): Promise<void> {
    const { settings, plannedAtMs } = await this.rebalance.watched(pool);
    if (settings.mode === 'off') {
      this.watched.delete(pool);
      return;
    }
    const watched = this.watched.get(pool) ?? { schedule: new PlanSchedule(Date.now()), plannedAtMs };
    this.watched.set(pool, watched);
    const { schedule } = watched;
    const trigger = schedule.look(await this.rebalance.servers(pool), settings, Date.now());
    if (plannedAtMs !== watched.plannedAtMs) {
      // Another replica has planned since the last check, and answered the triggers until now.
      watched.plannedAtMs = plannedAtMs;
      schedule.planned(Date.now());
      return;
    }
    if (trigger === undefined) return;
    const { turn } = await this.store.settings(pool, { turnMs: settings.minPlanIntervalMs });
    if (!turn) return;
    // If the plan fails, its trigger is kept for the next turn, in each replica.
    await this.planNow(pool, settings, trigger);
    const stored = await this.store.settings(pool, { isPlanned: true });
    watched.plannedAtMs = stored.plannedAtMs;
    schedule.planned(Date.now());
  }

  private async planNow(pool: PoolName, settings: RebalanceSettings, trigger: RebalanceTrigger): Promise<void> {
    const plan = await this.rebalance.makePlan(pool, settings);
    const isExecuted = plan.moves.length > 0 && settings.mode === 'on';
    this.metrics.plans.inc({ trigger, outcome: plan.reason ?? (isExecuted ? 'executed' : 'dry-run') });
    if (plan.moves.length === 0) return;
    const planId = `${trigger}-${randomUUID()}`;
    await this.rebalance.keep(pool, planId, plan);
    const { moves, ...summary } = plan;
    this.logger.log(
      { pool, planId, moves: moves.length, ...summary },
      isExecuted ? 'A rebalance plan is executed' : 'A rebalance plan was made',
    );
    if (!isExecuted) return;
    await this.sender.send(pool, planId, settings.maxMovesPerRequest);
    this.metrics.planGain.inc(plan.gainSeconds);
    this.metrics.planCost.inc(plan.costSeconds);
  }
}
