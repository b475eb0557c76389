import { applyAll, placeAll, ReceiverLine, undoAll, type Placement, type Victim } from './place-victims';
import { longestFirst, PlannedServer } from './planned-server';
import type { NoMoveReason, PlannedMove, RebalancePlan, RebalanceSnapshot } from './rebalance.types';
import { relieveWaiting } from './relieve-waiting';
import {
  asVictim,
  mayMove,
  TIER_COST_DEFAULTS,
  type TierCostOptions,
  type TierCostSettings,
} from './tier-cost.options';
import { tierGain } from './tier-gain';
import { checkTiers, highestTier } from './tiers';

/**
 * Plans moves by tier, cost and future: the lowest batch tier for all servers whose gain is worth its moves, all or
 * nothing; then requests that wait for room go to where there is some. Drained servers are emptied first. The rules and
 * their reasons are in README.md.
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
    // What is free is carried out first.
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
  const { victim, to, means, costSeconds } = placement;
  const { request, from } = victim;
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

/** What a drain asks for is not weighed: as many as there is room for, the longest to run first. */
function emptyServers(servers: readonly PlannedServer[], settings: TierCostSettings): Placement[] {
  const line = new ReceiverLine(servers.filter(({ server }) => server.accepts && !server.leaving));
  const placements: Placement[] = [];
  for (const from of servers.filter(({ server }) => server.leaving)) {
    for (const request of longestFirst(from.server.requests)) {
      const victim = asVictim(request, from, settings);
      const placement = line.place(victim, Infinity);
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

/** Moves to the tier with the greatest gain less stall, of those worth it. */
function lowerTier(
  servers: readonly PlannedServer[],
  settings: TierCostSettings,
): LoweredTier | { reason: NoMoveReason } {
  const { tiers, minGainRatio, pauseSeconds } = settings;
  const tierNow = highestTier(servers, tiers);
  const accepting = servers.filter(({ server }) => server.accepts);
  const stallBefore = longestStall(servers);
  const candidates = new Map<PlannedServer, Victim[]>();
  const refusals = new Set<NoMoveReason>();
  let best: (LoweredTier & { net: number }) | undefined;
  // What the receivers were given: undone only when something else is to be placed.
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
    const donations = donors.map((donor) => {
      const known = candidates.get(donor) ?? cheapestFirst(donor, settings);
      candidates.set(donor, known);
      return { count: donor.load - target, candidates: known };
    });
    if (donations.some((donation) => donation.candidates.length < donation.count)) {
      refusals.add('held-back');
      continue;
    }
    const gainSeconds = tierGain(servers, target, tiers, settings);
    const placed = placeAll(donations, receivers, target);
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
  for (const { victim } of best.placements) victim.from.load -= 1;
  return best;
}

/** Those that may be moved; among equals the longest to run, which gains most from its new place. */
function cheapestFirst(from: PlannedServer, settings: TierCostSettings): Victim[] {
  const victims: Victim[] = [];
  for (const request of from.server.requests) {
    if (mayMove(request, settings)) victims.push(asVictim(request, from, settings));
  }
  return victims.sort((one, other) => one.leastSeconds - other.leastSeconds || other.endTokens - one.endTokens);
}
