/** A server as the routing policy sees it. */
export interface ModelServer {
  serverId: string;
  epoch: number;
  instanceId?: string;
  maxInflight: number;
  weight: number;
  weightVersion: number;
  /** Sequence of the last lease that chose it; 0 = never. */
  chosen: number;
}
/** Where an acquire goes, or the lane it would wait in. */
export type Choice = { server: string; branch: 'sticky-hit' | 'least-loaded' } | { lane: string };

/** Above it all loads count as equal: 2^20. */
const HIGHEST_LOAD = 2 ** 20;

/**
 * `least-inflight`: a session keeps to its server, full or not; else the least loaded server with room, among equals
 * the one chosen longest ago, then the first by id.
 * @param loadOf leases of a server
 * @param boundTo the server of the session while that is usable and of the same epoch
 */
export function chooseServer(
  servers: readonly ModelServer[],
  loadOf: (serverId: string) => number,
  weightVersion: number | undefined,
  boundTo: string | undefined,
): Choice {
  const fits = (server: ModelServer) => weightVersion === undefined || server.weightVersion === weightVersion;
  const bound = servers.find((server) => server.serverId === boundTo && fits(server));
  if (bound) {
    return loadOf(bound.serverId) < bound.maxInflight
      ? { server: bound.serverId, branch: 'sticky-hit' }
      : { lane: bound.serverId };
  }
  const order = servers
    .filter((server) => fits(server) && loadOf(server.serverId) < server.maxInflight)
    .map((server) => ({
      server,
      load: Math.min(HIGHEST_LOAD, Math.floor(loadOf(server.serverId) / server.weight)),
    }))
    .sort(
      (one, other) =>
        one.load - other.load ||
        one.server.chosen - other.server.chosen ||
        (one.server.serverId < other.server.serverId ? -1 : 1),
    );
  const best = order[0];
  if (best) return { server: best.server.serverId, branch: 'least-loaded' };
  return { lane: weightVersion === undefined ? '*' : `@${weightVersion}` };
}
