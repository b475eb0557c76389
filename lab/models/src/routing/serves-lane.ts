import type { EngineFeature } from '@broomwagon/contracts';
import { fits, type RoutingServer } from '@broomwagon/policies';

/** Whether a server may serve the waiters of the lane. */
export function servesLane(
  server: Pick<RoutingServer, 'serverId' | 'weightVersion' | 'labels' | 'lacks' | 'models'>,
  lane: string,
  newestWeightVersion: number,
): boolean {
  if (!lane.startsWith('@[')) return [server.serverId, '*', `@${server.weightVersion}`].includes(lane);
  const [weightVersion, minWeightVersion, maxWeightLag, excludeServers, labels, needs, model] = JSON.parse(
    lane.slice(1),
  ) as [number | null, number | null, number | null, string[], [string, string][], EngineFeature[], string | null];
  const request = {
    weightVersion: weightVersion ?? undefined,
    minWeightVersion: minWeightVersion ?? undefined,
    maxWeightLag: maxWeightLag ?? undefined,
    excludeServers,
    labels: Object.fromEntries(labels),
    needs,
    model: model ?? undefined,
  };
  return fits(server, request, newestWeightVersion);
}
