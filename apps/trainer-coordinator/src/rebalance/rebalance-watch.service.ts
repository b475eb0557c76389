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

/**
 * Plans when something has happened, in pools where that is switched on. Every replica looks; a turn in Redis sees to
 * it that one of them plans, and not too often.
 */
@Injectable()
export class RebalanceWatchService {
  private readonly logger = new Logger(RebalanceWatchService.name);
  private readonly schedules = new Map<PoolName, PlanSchedule>();

  constructor(
    private readonly store: MoveStore,
    private readonly rebalance: RebalanceService,
    private readonly sender: MoveSenderService,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** One look at a pool. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('rebalance', (config: CoordinatorConfig) => config.rebalanceCheckMs)
  async look(pool: PoolName): Promise<void> {
    const settings = await this.rebalance.settings(pool);
    if (settings.mode === 'off') {
      this.schedules.delete(pool);
      return;
    }
    const schedule = this.schedules.get(pool) ?? new PlanSchedule(Date.now());
    this.schedules.set(pool, schedule);
    const trigger = schedule.look(await this.rebalance.servers(pool), settings, Date.now());
    if (trigger === undefined) return;
    const { turn } = await this.store.settings(pool, { turnMs: settings.minPlanIntervalMs });
    if (!turn) return;
    // A plan that fails keeps its trigger for the next turn.
    await this.planNow(pool, settings, trigger);
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
