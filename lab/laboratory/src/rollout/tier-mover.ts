import type { RequestId, ServerId } from '@broomwagon/contracts';
import {
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

/** No request is expected to make less than this, tokens. */
const LEAST_REMAINING = 256;

export interface TierMoverOptions {
  policy: RebalancePolicy;
  /** Decode steps of the slowest server between two plans. */
  everySteps: number;
  /** Descending. */
  tiers: readonly number[];
  /** Longest response, tokens. */
  capTokens: number;
}

/** Carries out the plan of libs/policies, as the coordinator does. */
export class TierMover implements Mover {
  private round = 0;

  constructor(
    private readonly placement: Placement,
    private readonly samples: () => Iterable<Sample>,
    private readonly options: TierMoverOptions,
  ) {}

  roundBegins(): void {
    this.planLater(++this.round);
  }

  roundEnds(): void {
    this.round += 1;
  }

  private planLater(round: number): void {
    const { fleet, clock } = this.placement;
    const slowest = Math.max(...fleet.engines.map(({ stepSeconds }) => stepSeconds));
    clock.after(this.options.everySteps * slowest, () => {
      if (round !== this.round) return;
      this.rebalance();
      this.planLater(round);
    });
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

  /** By server in the order in which they came to it. */
  private collect(): { byServer: Sample[][]; byId: Map<string, Sample> } {
    const byServer: Sample[][] = this.placement.fleet.engines.map(() => []);
    const byId = new Map<string, Sample>();
    for (const sample of this.samples()) {
      if (sample.server === undefined) continue;
      byServer[sample.server]!.push(sample);
      byId.set(sample.routeRequest.requestId, sample);
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
      requests: samples.map((sample) => this.requestState(sample, server)),
    };
  }

  /** The remaining length is unknown: as for a heavy tail, as much again as was generated. */
  private requestState(sample: Sample, server: number): RebalanceRequest {
    const engine = this.placement.fleet.engine(server);
    const made = keptTokens(sample) + (engine.made(sample) ?? 0);
    return {
      requestId: sample.routeRequest.requestId as RequestId,
      attempt: String(sample.attempt),
      phase: engine.state(sample) === 'running' ? 'running' : 'waiting',
      promptTokens: sample.promptTokens,
      madeTokens: made,
      remainingTokens: Math.max(LEAST_REMAINING, Math.min(made, this.options.capTokens - made)),
      moves: sample.moves,
      ...(sample.moves > 0 && { sinceMoveMs: (this.placement.clock.now - sample.movedAtSeconds) * 1_000 }),
    };
  }
}
