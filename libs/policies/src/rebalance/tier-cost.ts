import { countEndTokens, countKvTokens } from './move-cost';
import { applyAll, placeAll, ReceiverLine, undoAll, type Placement } from './place-victims';
import { longestFirst, PlannedServer } from './planned-server';
import type { NoMoveReason, PlannedMove, RebalancePlan, RebalanceRequest, RebalanceSnapshot } from './rebalance.types';
import { relieveWaiting } from './relieve-waiting';
import { mayMove, TIER_COST_DEFAULTS, type TierCostOptions, type TierCostSettings } from './tier-cost.options';
import { tierGain } from './tier-gain';
import { checkTiers, highestTier } from './tiers';

/**
 * Plans moves in three steps. Drained servers are emptied. Then all servers are brought to one lower batch tier, if the
 * gain is worth all moves together. Then waiting requests move to servers with room. README.md has the rules and
 * reasons.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function planTierCost(snapshot: RebalanceSnapshot, options: TierCostOptions): RebalancePlan {
  const settings: TierCostSettings = { ...TIER_COST_DEFAULTS, ...options };
  const { tiers } = settings;
  checkTiers(tiers);
  const servers = snapshot.servers.map((server) => new PlannedServer(server));
  const staying = servers.filter(({ server }) => !server.leaving);
  const tierBefore = highestTier(servers, tiers);

  const left = emptyServers(servers, settings);
  const lowered = lowerTier(staying, settings);
  const tierMoves = 'reason' in lowered ? [] : lowered.placements;
  const tierGainSeconds = 'reason' in lowered ? 0 : lowered.gainSeconds;
  const reliefs = relieveWaiting(staying, tierMoves, settings);

  const moves = [
    ...left.map((placement) => plannedMove(placement, 'leave', 0)),
    // Moves without cost are executed first.
    ...[...tierMoves.filter(isFree), ...tierMoves.filter((placement) => !isFree(placement))].map((placement) =>
      plannedMove(placement, 'tier', tierGainSeconds / tierMoves.length),
    ),
    ...reliefs.map((relief) => plannedMove(relief, 'wait', relief.gainSeconds)),
  ];
  return {
    policy: 'tier-cost',
    moves,
    tierBefore,
    tierAfter: highestTier(servers, tiers),
    gainSeconds: tierGainSeconds + (reliefs[0]?.gainSeconds ?? 0),
    costSeconds: moves.reduce((sum, move) => sum + move.costSeconds, 0),
    stallSeconds: longestStall(servers),
    ...(moves.length === 0 && { reason: 'reason' in lowered ? lowered.reason : 'balanced' }),
  };
}

function isFree({ costSeconds }: Placement): boolean {
  return costSeconds === 0;
}

function plannedMove(placement: Placement, purpose: PlannedMove['purpose'], gainSeconds: number): PlannedMove {
  const { request, from, to, means, costSeconds } = placement;
  return {
    requestId: request.requestId,
    attempt: request.attempt,
    fromServerId: from.server.serverId,
    fromEpoch: from.server.epoch,
    toServerId: to.server.serverId,
    toEpoch: to.server.epoch,
    purpose,
    means,
    costSeconds,
    gainSeconds,
  };
}

function longestStall(servers: readonly PlannedServer[]): number {
  return servers.reduce((longest, { stallSeconds }) => Math.max(longest, stallSeconds), 0);
}

/**
 * Places as many requests of leaving servers as possible, at any cost. The request with the most remaining tokens comes
 * first.
 */
function emptyServers(servers: readonly PlannedServer[], settings: TierCostSettings): Placement[] {
  const line = new ReceiverLine(
    servers.filter(({ server }) => server.accepts && !server.leaving),
    settings,
  );
  const placements: Placement[] = [];
  for (const from of servers.filter(({ server }) => server.leaving)) {
    for (const request of longestFirst(from.server.requests)) {
      const placement = line.place(request, from, Infinity);
      if (placement === undefined) continue;
      from.load -= 1;
      placements.push(placement);
    }
  }
  return placements;
}

interface LoweredTier {
  placements: readonly Placement[];
  gainSeconds: number;
}

/**
 * Plans the moves to the tier with the greatest difference of gain and stall, among tiers that are worth their moves.
 */
function lowerTier(
  servers: readonly PlannedServer[],
  settings: TierCostSettings,
): LoweredTier | { reason: NoMoveReason } {
  const { tiers, minGainRatio, pauseSeconds } = settings;
  const tierNow = highestTier(servers, tiers);
  const accepting = servers.filter(({ server }) => server.accepts);
  const stallBefore = longestStall(servers);
  const candidates = new Map<PlannedServer, readonly RebalanceRequest[]>();
  const refusals = new Set<NoMoveReason>();
  let best: (LoweredTier & { net: number }) | undefined;
  // Placements that are applied to the receivers now.
  let applied: readonly Placement[] = [];
  for (const target of tiers.toReversed()) {
    if (target >= tierNow) break;
    undoAll(applied);
    applied = [];
    const donors = servers.filter(({ load }) => load > target);
    const receivers = accepting.filter(({ load, server }) => load < Math.min(target, server.capacity));
    const surplus = donors.reduce((sum, { load }) => sum + load - target, 0);
    const slack = receivers.reduce((sum, { load, server }) => sum + Math.min(target, server.capacity) - load, 0);
    if (slack < surplus) continue;
    const donations = donors.map((from) => {
      const known = candidates.get(from) ?? cheapestFirst(from.server.requests, settings);
      candidates.set(from, known);
      return { from, count: from.load - target, candidates: known };
    });
    if (donations.some((donation) => donation.candidates.length < donation.count)) {
      refusals.add('held-back');
      continue;
    }
    const gainSeconds = tierGain(servers, target, tiers, settings);
    const placed = placeAll(donations, receivers, target, settings);
    if (placed === undefined) {
      refusals.add('no-room');
      continue;
    }
    applied = placed.placements;
    const stallSeconds = longestStall(receivers) - stallBefore;
    const net = gainSeconds - stallSeconds;
    if (gainSeconds <= minGainRatio * stallSeconds + pauseSeconds) refusals.add('not-worth-it');
    else if (best === undefined || net > best.net) best = { placements: placed.placements, gainSeconds, net };
  }
  if (applied !== best?.placements) {
    undoAll(applied);
    applyAll(best?.placements ?? []);
  }
  if (best === undefined) {
    const said = (['not-worth-it', 'held-back', 'no-room'] as const).find((reason) => refusals.has(reason));
    return { reason: said ?? 'balanced' };
  }
  for (const { from } of best.placements) from.load -= 1;
  return best;
}

/**
 * Sorts the requests that may be moved. Requests without a cache come first, longest first, because long requests gain
 * most. Requests with a cache follow, smallest cache first. Numbers sort much faster than objects, so each key combines
 * order and position.
 */
function cheapestFirst(requests: readonly RebalanceRequest[], settings: TierCostSettings): RebalanceRequest[] {
  const keys = new Float64Array(requests.length);
  let count = 0;
  requests.forEach((request, position) => {
    if (!mayMove(request, settings)) return;
    const order = request.phase === 'running' ? countKvTokens(request) : -countEndTokens(request);
    keys[count++] = Math.round(order) * requests.length + position;
  });
  const ordered: RebalanceRequest[] = [];
  for (const key of keys.subarray(0, count).sort())
    ordered.push(requests[key - Math.floor(key / requests.length) * requests.length] as RebalanceRequest);
  return ordered;
}
