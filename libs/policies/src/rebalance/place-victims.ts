import { countEndTokens, moveCost, type MoveCostModel } from './move-cost';
import type { PlannedServer } from './planned-server';
import type { MoveMeans, RebalanceRequest } from './rebalance.types';

/** Requests that one server gives away: `count` of the candidates. */
export interface Donation {
  from: PlannedServer;
  count: number;
  /** At least `count` requests, cheapest first. */
  candidates: readonly RebalanceRequest[];
}
export interface Placement {
  request: RebalanceRequest;
  from: PlannedServer;
  to: PlannedServer;
  means: MoveMeans;
  costSeconds: number;
}

/** Maximum receivers that are tried for one victim. The bound limits the work for many servers. */
const RECEIVERS_TRIED = 32;
/** Maximum victims of an exact search, which follows when the greedy choice is not the cheapest. */
const SEARCHED_VICTIMS = 12;
/** Relative difference of sums in different orders. */
const ROUNDING = 1e-9;
/** Maximum steps of an exact search. */
const SEARCH_STEPS = 20_000;

/** Placements that are applied to the receivers. Donors still count the requests. */
export interface Placed {
  placements: Placement[];
  costSeconds: number;
}

/**
 * Places all donated requests, with at most `limit` calls on each receiver; undefined if some request finds no room.
 * Placements stay applied to the receivers. Each request goes to the least loaded receiver, so that the load is even.
 * Up to `SEARCHED_VICTIMS` requests the result is the cheapest placement. Above, a placement may be missed if nearly
 * all KV caches are full.
 */
export function placeAll(
  donations: readonly Donation[],
  receivers: readonly PlannedServer[],
  limit: number,
  model: MoveCostModel,
): Placed | undefined {
  const greedy =
    placeGreedily(donations, receivers, limit, model) ?? placeGreedily(donations, receivers, limit, model, true);
  if (donations.reduce((sum, { count }) => sum + count, 0) > SEARCHED_VICTIMS) return greedy;
  const leastOfAll = donations
    .flatMap(({ from, count, candidates }) => candidates.slice(0, count).map((one) => leastSeconds(one, from, model)))
    .reduce((sum, seconds) => sum + seconds, 0);
  if (greedy !== undefined && greedy.costSeconds <= leastOfAll * (1 + ROUNDING)) return greedy;
  undoAll(greedy?.placements ?? []);
  const best = search(donations, receivers, limit, model, greedy);
  applyAll(best?.placements ?? []);
  return best;
}

export function applyAll(placements: readonly Placement[]): void {
  for (const { request, to, costSeconds } of placements) to.take(request, costSeconds);
}

export function undoAll(placements: readonly Placement[]): void {
  for (const { request, to, costSeconds } of placements) to.untake(request, costSeconds);
}

/**
 * Places each request on the least loaded receiver with room, or else places the next cheapest request of the donor.
 * @param isLargestFirst places the largest requests first, which finds more placements
 */
function placeGreedily(
  donations: readonly Donation[],
  receivers: readonly PlannedServer[],
  limit: number,
  model: MoveCostModel,
  isLargestFirst = false,
): Placed | undefined {
  const line = new ReceiverLine(receivers, model);
  const placements: Placement[] = [];
  const chosen: { request: RebalanceRequest; donor: Donation & { next: number } }[] = [];
  for (const donation of donations) {
    const donor = { ...donation, next: donation.count };
    for (let index = 0; index < donor.count; index += 1)
      chosen.push({ request: donor.candidates[index] as RebalanceRequest, donor });
  }
  if (isLargestFirst) chosen.sort((one, other) => countEndTokens(other.request) - countEndTokens(one.request));
  let costSeconds = 0;
  for (const { request: first, donor } of chosen) {
    let request: RebalanceRequest | undefined = first;
    let placement = line.place(request, donor.from, limit);
    while (placement === undefined && request !== undefined) {
      request = donor.candidates[donor.next++];
      placement = request && line.place(request, donor.from, limit);
    }
    if (placement === undefined) {
      undoAll(placements);
      return undefined;
    }
    placements.push(placement);
    costSeconds += placement.costSeconds;
  }
  return { placements, costSeconds };
}

/** Receivers, ordered by KV store, and by load within a store. */
export class ReceiverLine {
  private readonly lines = new Map<string | undefined, LineOfStore>();

  constructor(
    receivers: Iterable<PlannedServer>,
    private readonly model: MoveCostModel,
  ) {
    for (const receiver of receivers) {
      const { kvStore } = receiver.server;
      let line = this.lines.get(kvStore);
      if (line === undefined) this.lines.set(kvStore, (line = new LineOfStore(model)));
      line.insert(receiver);
    }
  }

  /**
   * Places a request on the least loaded receiver with room. Receivers of the KV store of the request come first, if
   * reading the cache is cheaper.
   */
  place(request: RebalanceRequest, from: PlannedServer, limit: number): Placement | undefined {
    const { kvStore } = from.server;
    const isKept = kvStore !== undefined && moveCost(request, this.model, true).means === 'transfer';
    const own = isKept ? this.lines.get(kvStore)?.place(request, from, limit) : undefined;
    if (own !== undefined) return own;
    if (this.lines.size === 1 && !isKept) return this.lines.values().next().value?.place(request, from, limit);
    const others = [...this.lines].filter(([store]) => !isKept || store !== kvStore).map(([, line]) => line);
    for (const line of others.sort((one, other) => one.leastLoad() - other.leastLoad())) {
      const placement = line.place(request, from, limit);
      if (placement !== undefined) return placement;
    }
    return undefined;
  }
}

/** Receivers of one KV store, or without a store, by load. */
class LineOfStore {
  private readonly byLoad: PlannedServer[][] = [];
  /** Lower bound of the load of all receivers. */
  private lowest = 0;

  constructor(private readonly model: MoveCostModel) {}

  leastLoad(): number {
    while (this.lowest < this.byLoad.length && (this.byLoad[this.lowest]?.length ?? 0) === 0) this.lowest += 1;
    return this.lowest;
  }

  place(request: RebalanceRequest, from: PlannedServer, limit: number): Placement | undefined {
    let tried = 0;
    for (
      let load = this.leastLoad();
      load < Math.min(limit, this.byLoad.length) && tried < RECEIVERS_TRIED;
      load += 1
    ) {
      const receivers = this.byLoad[load] ?? [];
      for (let index = 0; index < receivers.length && tried < RECEIVERS_TRIED; index += 1, tried += 1) {
        const to = receivers[index] as PlannedServer;
        if (!to.fits(request, limit)) continue;
        // Receivers of the same load have no order, and a splice of a long list is slow.
        receivers[index] = receivers.at(-1) as PlannedServer;
        receivers.pop();
        const { means, costSeconds } = moveCost(request, this.model, sharesStore(from, to));
        to.take(request, costSeconds);
        this.insert(to);
        return { request, from, to, means, costSeconds };
      }
    }
    return undefined;
  }

  insert(receiver: PlannedServer): void {
    (this.byLoad[receiver.load] ??= []).push(receiver);
  }
}

function sharesStore(from: PlannedServer, to: PlannedServer): boolean {
  return from.server.kvStore !== undefined && from.server.kvStore === to.server.kvStore;
}

/** Returns the lowest cost over all receivers, seconds. */
function leastSeconds(request: RebalanceRequest, from: PlannedServer, model: MoveCostModel): number {
  return moveCost(request, model, from.server.kvStore !== undefined).costSeconds;
}

/** Searches the cheapest placement, depth first; exact within {@link SEARCH_STEPS}. */
function search(
  donations: readonly Donation[],
  receivers: readonly PlannedServer[],
  limit: number,
  model: MoveCostModel,
  known: Placed | undefined,
): Placed | undefined {
  let best = known;
  let steps = 0;
  const path: Placement[] = [];
  const visit = (donation: number, position: number, needed: number, costSeconds: number): void => {
    const current = donations[donation];
    if (current === undefined) {
      if (best === undefined || costSeconds < best.costSeconds) best = { placements: [...path], costSeconds };
      return;
    }
    if (needed === 0) return visit(donation + 1, 0, donations[donation + 1]?.count ?? 0, costSeconds);
    const { from } = current;
    const request = current.candidates[position];
    if (request === undefined || current.candidates.length - position < needed) return;
    // All later candidates of this donor cost as much or more.
    if (best !== undefined && costSeconds + needed * leastSeconds(request, from, model) >= best.costSeconds) return;
    for (const to of [...receivers].sort((one, other) => one.load - other.load)) {
      if (++steps > SEARCH_STEPS) return;
      if (!to.fits(request, limit)) continue;
      const move = moveCost(request, model, sharesStore(from, to));
      to.take(request, move.costSeconds);
      path.push({ request, from, to, ...move });
      visit(donation, position + 1, needed - 1, costSeconds + move.costSeconds);
      path.pop();
      to.untake(request, move.costSeconds);
    }
    visit(donation, position + 1, needed, costSeconds);
  };
  visit(0, 0, donations[0]?.count ?? 0, 0);
  return best;
}
