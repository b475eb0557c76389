import { moveCost, type MoveCostModel } from './move-cost';
import { USABLE_KV_SHARE } from './planned-server';
import type { RebalanceRequest, RebalanceServer } from './rebalance.types';
import { findTier } from './tiers';

/** Tried placements: `any`, or `give-or-take` (no server both gives and takes requests). */
export type Freedom = 'any' | 'give-or-take';

/**
 * Finds the lowest maximum tier that any placement reaches, and the least cost of reaching it, by trying all
 * placements. A server takes requests only if its KV cache can hold all its requests at their peak.
 */
export function optimum(
  servers: readonly RebalanceServer[],
  tiers: readonly number[],
  model: MoveCostModel,
  freedom: Freedom,
): { tier: number; costSeconds: number } {
  const loads = servers.map(({ requests }) => requests.length);
  const tierNow = Math.max(0, ...loads.map((load) => findTier(load, tiers)));
  for (const target of tiers.toReversed()) {
    if (target >= tierNow) break;
    const costSeconds = new Search(servers, target, model, freedom).run();
    if (costSeconds < Infinity) return { tier: target, costSeconds };
  }
  return { tier: tierNow, costSeconds: 0 };
}

interface Placeable {
  one: RebalanceRequest;
  home: number;
  /** Cost by server, seconds; Infinity where the request cannot go. */
  costs: number[];
}

class Search {
  private best = Infinity;
  private readonly placeables: Placeable[];
  private readonly held: RebalanceRequest[][];
  private readonly newcomers: number[];
  private readonly left: number[];

  constructor(
    private readonly servers: readonly RebalanceServer[],
    private readonly target: number,
    model: MoveCostModel,
    private readonly freedom: Freedom,
  ) {
    this.held = servers.map(() => []);
    this.newcomers = servers.map(() => 0);
    this.left = servers.map(() => 0);
    this.placeables = servers
      .flatMap(({ requests }, home) =>
        requests.map((one) => {
          const seconds = moveCost(one, model, false).costSeconds;
          return {
            one,
            home,
            costs: servers.map(({ accepts }, to) => (to === home ? 0 : accepts ? seconds : Infinity)),
          };
        }),
      )
      .sort((one, other) => Math.max(...other.costs) - Math.max(...one.costs));
  }

  run(): number {
    if (this.placeables.length <= this.target * this.servers.length) this.visit(0, 0);
    return this.best;
  }

  private visit(position: number, costSeconds: number): void {
    if (costSeconds >= this.best) return;
    const placeable = this.placeables[position];
    if (placeable === undefined) {
      this.best = costSeconds;
      return;
    }
    const { home, costs } = placeable;
    this.tryOn(home, placeable, position, costSeconds);
    for (let to = 0; to < costs.length; to += 1) {
      if (to !== home && costs[to]! < Infinity) this.tryOn(to, placeable, position, costSeconds);
    }
  }

  private tryOn(to: number, { one, home, costs }: Placeable, position: number, costSeconds: number): void {
    const held = this.held[to]!;
    if (held.length >= this.target) return;
    const isNew = to !== home;
    if (isNew) {
      this.newcomers[to]! += 1;
      this.left[home]! += 1;
    }
    held.push(one);
    if (this.isAllowed(to, home)) this.visit(position + 1, costSeconds + costs[to]!);
    held.pop();
    if (isNew) {
      this.newcomers[to]! -= 1;
      this.left[home]! -= 1;
    }
  }

  private isAllowed(to: number, home: number): boolean {
    const [gives, takes] = [this.left, this.newcomers];
    const isBoth = (server: number): boolean => gives[server]! > 0 && takes[server]! > 0;
    if (this.freedom === 'give-or-take' && (isBoth(to) || isBoth(home))) return false;
    const usable = (this.servers[to]!.kvCapacityTokens ?? Infinity) * USABLE_KV_SHARE;
    return takes[to] === 0 || peak(this.held[to]!) <= usable;
  }
}

/** Returns the highest sum of KV tokens of the requests over all later steps. */
function peak(requests: readonly RebalanceRequest[]): number {
  return Math.max(
    ...requests.map(({ remainingTokens: step }) =>
      requests
        .filter((one) => one.remainingTokens >= step)
        .reduce((sum, one) => sum + one.promptTokens + one.madeTokens + step, 0),
    ),
  );
}
