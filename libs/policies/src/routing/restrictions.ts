import type { EngineFeature } from '@broomwagon/contracts';
import type { RoutingServer } from './policies/policy';

/** What an acquire asks of its server. */
export interface Restrictions {
  weightVersion?: number;
  minWeightVersion?: number;
  maxWeightLag?: number;
  excludeServers?: readonly string[];
  labels?: Readonly<Record<string, string>>;
  needs?: readonly EngineFeature[];
}

/** @param newestWeightVersion of the servers that take leases */
export function fits(
  server: Pick<RoutingServer, 'serverId' | 'weightVersion' | 'labels' | 'lacks'>,
  request: Restrictions,
  newestWeightVersion: number,
): boolean {
  const { weightVersion, minWeightVersion = 0, maxWeightLag = Infinity, excludeServers = [], labels = {} } = request;
  const { needs = [] } = request;
  return (
    (weightVersion === undefined || server.weightVersion === weightVersion) &&
    server.weightVersion >= minWeightVersion &&
    newestWeightVersion - server.weightVersion <= maxWeightLag &&
    !excludeServers.includes(server.serverId) &&
    Object.entries(labels).every(([name, value]) => server.labels?.[name] === value) &&
    !needs.some((feature) => server.lacks?.includes(feature))
  );
}

/** The lane those wait in who have this request: `*` for none, `@<n>` for one exact weight version. */
export function laneOf(request: Restrictions): string {
  const excluded = (request.excludeServers ?? []).toSorted();
  const labels = Object.entries(request.labels ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const needs = (request.needs ?? []).toSorted();
  const { weightVersion, minWeightVersion, maxWeightLag } = request;
  const others =
    [minWeightVersion, maxWeightLag].some((one) => one !== undefined) ||
    excluded.length ||
    labels.length ||
    needs.length;
  if (!others) return weightVersion === undefined ? '*' : `@${weightVersion}`;
  return `@${JSON.stringify([weightVersion, minWeightVersion, maxWeightLag, excluded, labels, needs])}`;
}
