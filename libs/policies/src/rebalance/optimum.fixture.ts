import { moveCost, type MoveCostModel } from './move-cost';
import type { RebalanceRequest, RebalanceServer } from './rebalance.types';
import { tierOf } from './tiers';

/**
 * The lowest maximum tier that any placement reaches, and the least that costs, by trying all: a server above the tier
 * only gives, the others only take, each holds its requests at their peak.
 */
export function optimum(
  servers: readonly RebalanceServer[],
  tiers: readonly number[],
  model: MoveCostModel,
): { tier: number; costSeconds: number } {
  const loads = servers.map(({ requests }) => requests.length);
  const tierNow = Math.max(0, ...loads.map((load) => tierOf(load, tiers)));
  for (const target of tiers.toReversed()) {
    if (target >= tierNow) break;
    const costSeconds = cheapest(servers, target, model);
    if (costSeconds < Infinity) return { tier: target, costSeconds };
  }
  return { tier: tierNow, costSeconds: 0 };
}

function cheapest(servers: readonly RebalanceServer[], target: number, model: MoveCostModel): number {
  const held = servers.map(({ requests }) => [...requests]);
  const gives = servers.map(({ requests }) => requests.length > target);
  const candidates = servers.flatMap(({ requests }, from) =>
    gives[from] ? requests.map((one) => ({ one, from })) : [],
  );
  let best = Infinity;
  const visit = (position: number, costSeconds: number): void => {
    if (costSeconds >= best) return;
    const candidate = candidates[position];
    if (candidate === undefined) {
      if (held.every((requests) => requests.length <= target)) best = costSeconds;
      return;
    }
    visit(position + 1, costSeconds);
    const { one, from } = candidate;
    const home = held[from] as RebalanceRequest[];
    home.splice(home.indexOf(one), 1);
    servers.forEach((server, index) => {
      const requests = held[index] as RebalanceRequest[];
      if (gives[index] || !server.accepts || requests.length >= target) return;
      requests.push(one);
      if (peak(requests) <= (server.kvCapacityTokens ?? Infinity) * 0.98) {
        visit(position + 1, costSeconds + moveCost(one, model).seconds);
      }
      requests.pop();
    });
    home.push(one);
  };
  visit(0, 0);
  return best;
}

/** KV tokens at the worst of all steps, step by step. */
function peak(requests: readonly RebalanceRequest[]): number {
  return Math.max(
    ...requests.map(({ remainingTokens: step }) =>
      requests
        .filter((one) => one.remainingTokens >= step)
        .reduce((sum, one) => sum + one.promptTokens + one.madeTokens + step, 0),
    ),
  );
}
