import { ReceiverLine, type Placement, type Victim } from './place-victims';
import type { PlannedServer } from './planned-server';
import type { RebalanceRequest } from './rebalance.types';
import { asVictim, mayMove, type TierCostSettings } from './tier-cost.options';
import { tierSeconds } from './tier-gain';
import { highestTier, tierOf } from './tiers';

/** A request that need not wait any more. */
export interface Relief extends Placement {
  /** Time until it would run where it is, seconds. */
  gainSeconds: number;
}

/**
 * Requests without a cache go free to where they run at once: servers without a queue, up to the largest tier in use,
 * so that no step becomes slower than the slowest. Those that wait longest first.
 * @param given their victims leave their server anyway
 */
export function relieveWaiting(
  servers: readonly PlannedServer[],
  given: readonly Placement[],
  settings: TierCostSettings,
): Relief[] {
  const queueing = servers.filter(({ server }) => server.requests.some(({ phase }) => phase !== 'running'));
  if (queueing.length === 0) return [];
  const leaving = new Set(given.map(({ victim }) => victim.request));
  const waits = queueing.flatMap((server) => waitsOf(server, leaving, settings));
  if (waits.length === 0) return [];
  const limit = Math.min(highestTier(servers, settings.tiers), settings.tiers[0] as number);
  const busy = new Set(waits.map(({ victim }) => victim.from));
  const line = new ReceiverLine(servers.filter((server) => server.server.accepts && !busy.has(server)));
  waits.sort((one, other) => other.gainSeconds - one.gainSeconds);
  const reliefs: Relief[] = [];
  for (const { victim, gainSeconds } of waits) {
    if (gainSeconds <= settings.pauseSeconds) break;
    const placement = line.place(victim, limit);
    if (placement === undefined) continue;
    victim.from.load -= 1;
    reliefs.push({ ...placement, gainSeconds });
  }
  return reliefs;
}

/** Each place in the queue is reached when one more of those that run has ended. */
function waitsOf(
  from: PlannedServer,
  leaving: ReadonlySet<RebalanceRequest>,
  settings: TierCostSettings,
): { victim: Victim; gainSeconds: number }[] {
  const queue: RebalanceRequest[] = [];
  const ends: number[] = [];
  for (const request of from.server.requests) {
    if (leaving.has(request)) continue;
    if (request.phase === 'running') ends.push(request.remainingTokens);
    else queue.push(request);
  }
  if (queue.length === 0) return [];
  const sortedEnds = Float64Array.from(ends).sort();
  const stepSeconds = tierSeconds(tierOf(from.load, settings.tiers), settings);
  return queue.flatMap((request, position) => {
    const steps = sortedEnds[Math.min(position, ends.length - 1)] ?? 0;
    return mayMove(request, settings)
      ? [{ victim: asVictim(request, from, settings), gainSeconds: steps * stepSeconds }]
      : [];
  });
}
