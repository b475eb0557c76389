import { ReceiverLine, type Placement } from './place-victims';
import { sortedEnds, type PlannedServer } from './planned-server';
import type { RebalanceRequest } from './rebalance.types';
import { mayMove, type TierCostSettings } from './tier-cost.options';
import { tierSeconds } from './tier-gain';
import { highestTier, findTier } from './tiers';

interface Wait {
  request: RebalanceRequest;
  from: PlannedServer;
  /** Expected wait on the present server, seconds. */
  gainSeconds: number;
}

/** A waiting request with a placement where it runs at once. */
export type Relief = Placement & Wait;

/**
 * Places waiting requests on servers without a queue, longest wait first. Requests without a cache move at no cost.
 * Receivers are filled up to the largest tier in use, so that the slowest decode step does not become slower.
 * @param given placements of requests that leave their server for another reason
 */
export function relieveWaiting(
  servers: readonly PlannedServer[],
  given: readonly Placement[],
  settings: TierCostSettings,
): Relief[] {
  const queueing = servers.filter(({ server }) => server.requests.some(({ phase }) => phase !== 'running'));
  if (queueing.length === 0) return [];
  const leaving = new Set(given.map(({ request }) => request));
  const waits = queueing.flatMap((server) => listWaits(server, leaving, settings));
  if (waits.length === 0) return [];
  const limit = Math.min(highestTier(servers, settings.tiers), settings.tiers[0] as number);
  const busy = new Set(waits.map(({ from }) => from));
  const line = new ReceiverLine(
    servers.filter((server) => server.server.accepts && !busy.has(server)),
    settings,
  );
  waits.sort((one, other) => other.gainSeconds - one.gainSeconds);
  const reliefs: Relief[] = [];
  for (const { request, from, gainSeconds } of waits) {
    if (gainSeconds <= settings.pauseSeconds) break;
    const placement = line.place(request, from, limit);
    if (placement === undefined) continue;
    from.load -= 1;
    reliefs.push({ ...placement, gainSeconds });
  }
  return reliefs;
}

/**
 * Predicts the wait of each queued request. The n-th request of the queue runs when n running requests have ended. If
 * only calls run that cannot be moved, their length is unknown, and the length of the waiting request is taken instead.
 */
function listWaits(from: PlannedServer, leaving: ReadonlySet<RebalanceRequest>, settings: TierCostSettings): Wait[] {
  const staying = (isRunning: boolean): RebalanceRequest[] =>
    from.server.requests.filter((one) => (one.phase === 'running') === isRunning && !leaving.has(one));
  const queue = staying(false);
  if (queue.length === 0) return [];
  const ends = sortedEnds(staying(true));
  const { otherCalls = 0 } = from.server;
  const stepSeconds = tierSeconds(findTier(from.load, settings.tiers), settings);
  return queue
    .map((request, position) => {
      const steps = ends[Math.min(position, ends.length - 1)] ?? (otherCalls > 0 ? request.remainingTokens : 0);
      return { request, from, gainSeconds: steps * stepSeconds };
    })
    .filter(({ request }) => mayMove(request, settings));
}
