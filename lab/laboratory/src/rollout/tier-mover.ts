import type { RequestId, ServerId } from '@broomwagon/contracts';
import type { ModelGroup } from '@broomwagon/models';
import {
  estimateRemaining,
  PlanSchedule,
  planTierCost,
  planTierMin,
  type RebalancePlan,
  type RebalancePolicy,
  type RebalanceRequest,
  type RebalanceServer,
} from '@broomwagon/policies';
import type { Placement } from './placement';
import type { Mover } from './rollout.types';
import { keptTokens, type Sample } from './sample';

/** Defaults of the coordinator: seconds between checks of the servers, and longest and shortest time between plans. */
const LOOK_SECONDS = 1;
const PLAN_INTERVAL_MS = 60_000;
const MIN_PLAN_INTERVAL_MS = 5_000;

export interface TierMoverOptions {
  policy: RebalancePolicy;
  /** Decode steps of the slowest server between two plans; 0: plans follow events, as in production. */
  everySteps: number;
  /** Batch sizes of the tiers, descending. */
  tiers: readonly number[];
  /** Longest response, tokens. */
  capTokens: number;
}

/** Carries out plans of libs/policies, as the coordinator does. */
export class TierMover implements Mover {
  private round = 0;
  private plannedAtMs = 0;
  /** Tokens of the longest unfinished sample of each group. */
  private readonly unfinishedOf = new Map<ModelGroup, number>();

  constructor(
    private readonly placement: Placement,
    private readonly samples: () => Iterable<Sample>,
    private readonly options: TierMoverOptions,
  ) {}

  roundBegins(): void {
    const schedule = new PlanSchedule(this.nowMs);
    this.lookLater(++this.round, schedule);
  }

  roundEnds(): void {
    this.round += 1;
  }

  private get nowMs(): number {
    return this.placement.clock.now * 1_000;
  }

  private lookLater(round: number, schedule: PlanSchedule): void {
    this.placement.clock.after(LOOK_SECONDS, () => {
      if (round !== this.round) return;
      this.look(schedule);
      this.lookLater(round, schedule);
    });
  }

  private look(schedule: PlanSchedule): void {
    const { fleet } = this.placement;
    const engines = fleet.engines.map((_, server) => fleet.engine(server));
    const views = engines.map(({ runningCount, waitingCount, totals }, server) => ({
      serverId: `${server}` as ServerId,
      epoch: 'e1',
      state: 'ready' as const,
      inflight: runningCount + waitingCount,
      load: { running: runningCount, waiting: waitingCount, preemptions: totals.preemptions, ageMs: 0 },
    }));
    const settings = {
      tiers: [...this.options.tiers],
      // The schedule must count actual step times, not the step times that a plan expects.
      stepBaseSeconds: Math.max(...engines.map(({ stepSeconds }) => stepSeconds)),
      stepPerSequenceSeconds: 0,
      planIntervalMs: PLAN_INTERVAL_MS,
      planIntervalSteps: this.options.everySteps,
    };
    if (schedule.look(views, settings, this.nowMs) === undefined) return;
    if (this.options.everySteps === 0 && this.nowMs < this.plannedAtMs + MIN_PLAN_INTERVAL_MS) return;
    schedule.planned(this.nowMs);
    this.plannedAtMs = this.nowMs;
    this.rebalance();
  }

  private rebalance(): void {
    const { byServer, byId } = this.collect();
    const servers = byServer.map((samples, server) => this.serverState(server, samples));
    const { moves } = this.plan(servers);
    for (const { requestId, toServerId } of moves) this.placement.move(byId.get(requestId)!, Number(toServerId));
  }

  private plan(servers: RebalanceServer[]): RebalancePlan {
    const { policy, tiers } = this.options;
    if (policy === 'tier-min') return planTierMin({ servers }, { tiers });
    const { transfer, fleet } = this.placement;
    const { parameters } = fleet.options;
    return planTierCost(
      { servers },
      {
        tiers,
        stepBaseSeconds: parameters.stepBaseSeconds,
        stepPerSequenceSeconds: parameters.stepPerSequenceSeconds,
        prefillTokensPerSecond: parameters.prefillTokensPerSecond,
        ...(transfer && { transfer: { setupSeconds: 0.02, ...transfer } }),
      },
    );
  }

  /** Collects samples by server, in the order of their arrival there. */
  private collect(): { byServer: Sample[][]; byId: Map<string, Sample> } {
    const byServer: Sample[][] = this.placement.fleet.engines.map(() => []);
    const byId = new Map<string, Sample>();
    this.unfinishedOf.clear();
    for (const sample of this.samples()) {
      if (sample.server === undefined) continue;
      byServer[sample.server]!.push(sample);
      byId.set(sample.routeRequest.requestId, sample);
      const { group } = sample.request;
      this.unfinishedOf.set(group, Math.max(this.unfinishedOf.get(group) ?? 0, this.madeBy(sample)));
    }
    for (const samples of byServer) samples.sort((one, other) => one.movedAtSeconds - other.movedAtSeconds);
    return { byServer, byId };
  }

  private serverState(server: number, samples: readonly Sample[]): RebalanceServer {
    const engine = this.placement.fleet.engine(server);
    return {
      serverId: `${server}` as ServerId,
      epoch: 'e1',
      accepts: true,
      capacity: engine.parameters.slots,
      kvCapacityTokens: engine.parameters.kvCapacityTokens,
      kvUse: engine.kvUse,
      ...(this.placement.transfer && { kvStore: 'all' }),
      requests: samples.map((sample) => this.requestState(sample, server)),
    };
  }

  private requestState(sample: Sample, server: number): RebalanceRequest {
    const madeTokens = this.madeBy(sample);
    const siblings = sample.request.group.requests;
    const finished = siblings.filter(({ state }) => state === 'finished');
    return {
      requestId: sample.routeRequest.requestId as RequestId,
      attempt: String(sample.attempt),
      phase: this.placement.fleet.engine(server).state(sample) === 'running' ? 'running' : 'waiting',
      promptTokens: sample.promptTokens,
      madeTokens,
      remainingTokens: estimateRemaining({
        madeTokens,
        maxTokens: this.options.capTokens,
        longestTokens: finished.reduce((longest, { tokens }) => Math.max(longest, tokens), 0),
        // No lengths are remembered, since each prompt is rolled out once.
        rememberedTokens: 0,
        unfinishedTokens: this.unfinishedOf.get(sample.request.group) ?? 0,
      }),
      moves: sample.moves,
      ...(sample.moves > 0 && { sinceMoveMs: this.nowMs - sample.movedAtSeconds * 1_000 }),
    };
  }

  private madeBy(sample: Sample): number {
    const { server } = sample;
    return keptTokens(sample) + (server === undefined ? 0 : (this.placement.fleet.engine(server).made(sample) ?? 0));
  }
}
