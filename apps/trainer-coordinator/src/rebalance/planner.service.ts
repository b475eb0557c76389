import { Injectable } from '@nestjs/common';
import type { PoolName, RebalanceSettings, ServerStatus } from '@broomwagon/contracts';
import { planTierCost, planTierMin, type RebalancePlan } from '@broomwagon/policies';
import { MoveStore, ServerStore } from '@broomwagon/state';
import { fleetSnapshots } from './fleet-snapshot';

/** Makes plans from what stands in Redis; moves nothing. */
@Injectable()
export class PlannerService {
  constructor(
    private readonly moves: MoveStore,
    private readonly serverStore: ServerStore,
  ) {}

  /** One plan for the pool. @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE */
  async plan(pool: PoolName, settings: RebalanceSettings): Promise<RebalancePlan> {
    // Servers first: what was granted in between is on one of them, or of no interest to this plan.
    const servers = await this.servers(pool);
    const { running, others } = await this.moves.calls(pool);
    const plans = fleetSnapshots({ servers, running, others }, settings).map((snapshot) =>
      settings.policy === 'tier-min' ? planTierMin(snapshot, settings) : planTierCost(snapshot, settings),
    );
    return joined(plans, settings);
  }

  /** All servers of the pool, with their loads. @throws BroomwagonError UNAVAILABLE */
  async servers(pool: PoolName): Promise<ServerStatus[]> {
    const servers = new Map<string, ServerStatus>();
    for await (const page of this.serverStore.pages('list', pool)) {
      for (const server of page.servers) servers.set(server.serverId, server);
    }
    return [...servers.values()];
  }
}

/** Servers of different weight versions are planned apart; the plan of the pool is all of them. */
function joined(plans: readonly RebalancePlan[], { policy }: RebalanceSettings): RebalancePlan {
  const most = (of: (plan: RebalancePlan) => number): number => Math.max(0, ...plans.map(of));
  const moves = plans.flatMap((plan) => plan.moves);
  return {
    policy,
    moves,
    tierBefore: most((plan) => plan.tierBefore),
    tierAfter: most((plan) => plan.tierAfter),
    gainSeconds: most((plan) => plan.gainSeconds),
    costSeconds: plans.reduce((sum, { costSeconds }) => sum + costSeconds, 0),
    stallSeconds: most((plan) => plan.stallSeconds),
    ...(moves.length === 0 && { reason: plans.find(({ reason }) => reason !== 'balanced')?.reason ?? 'balanced' }),
  };
}
