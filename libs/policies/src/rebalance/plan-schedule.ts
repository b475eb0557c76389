import type { RebalanceSettings } from '@broomwagon/contracts';
import { tierSeconds, type StepModel } from './tier-gain';
import { findTier } from './tiers';
import { rebalanceTrigger, type RebalanceTrigger, type ServerView } from './trigger';

/** Settings that decide when plans are made. */
export type ScheduleSettings = StepModel & Pick<RebalanceSettings, 'tiers' | 'planIntervalMs' | 'planIntervalSteps'>;

/**
 * Decides when to plan, by comparing each view of the servers with the view before. Times are milliseconds of a
 * monotonic clock.
 */
export class PlanSchedule {
  private servers?: readonly ServerView[];
  /** Latest trigger since the last plan. */
  private trigger?: RebalanceTrigger;
  private plannedAtMs: number;
  private lookedAtMs: number;
  /** Decode steps of the fullest server since the last plan. */
  private steps = 0;

  constructor(nowMs: number) {
    this.plannedAtMs = nowMs;
    this.lookedAtMs = nowMs;
  }

  /** Returns why a plan is due, at each call until {@link planned}; undefined if no plan is due. */
  look(servers: readonly ServerView[], settings: ScheduleSettings, nowMs: number): RebalanceTrigger | undefined {
    const { tiers, planIntervalMs, planIntervalSteps } = settings;
    const largest = servers.reduce((most, { inflight }) => Math.max(most, inflight), 0);
    if (largest > 0) {
      this.steps += (nowMs - this.lookedAtMs) / 1_000 / tierSeconds(findTier(largest, tiers), settings);
    }
    this.lookedAtMs = nowMs;
    const happened = rebalanceTrigger(this.servers, servers, tiers);
    this.servers = servers;
    if (planIntervalSteps === 0 || happened === 'drain') this.trigger = happened ?? this.trigger;
    const isDue = planIntervalSteps > 0 ? this.steps >= planIntervalSteps : nowMs - this.plannedAtMs >= planIntervalMs;
    return this.trigger ?? (isDue ? 'interval' : undefined);
  }

  /** Forgets the trigger; to be called after each plan. */
  planned(nowMs: number): void {
    this.trigger = undefined;
    this.plannedAtMs = nowMs;
    this.steps = 0;
  }
}
