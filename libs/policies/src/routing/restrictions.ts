import type { EngineFeature, SnapshotServer } from '@broomwagon/contracts';

/** Requirements of an acquire on its server. */
export interface Restrictions {
  weightVersion?: number;
  minWeightVersion?: number;
  maxWeightLag?: number;
  excludeServers?: readonly string[];
  labels?: Readonly<Record<string, string>>;
  needs?: readonly EngineFeature[];
  model?: string;
}

/**
 * Whether a server meets the requirements.
 * @param newestWeightVersion newest weight version among servers that take leases
 */
export function fits(
  server: Pick<SnapshotServer, 'serverId' | 'weightVersion' | 'labels' | 'lacks' | 'lacksModel'>,
  request: Restrictions,
  newestWeightVersion: number,
): boolean {
  const { weightVersion, minWeightVersion = 0, maxWeightLag = Infinity } = request;
  const { excludeServers, labels, needs, model } = request;
  return (
    (weightVersion === undefined || server.weightVersion === weightVersion) &&
    server.weightVersion >= minWeightVersion &&
    newestWeightVersion - server.weightVersion <= maxWeightLag &&
    !excludeServers?.includes(server.serverId) &&
    (labels === undefined || Object.entries(labels).every(([name, value]) => server.labels?.[name] === value)) &&
    !needs?.some((feature) => server.lacks?.includes(feature)) &&
    (model === undefined || server.lacksModel !== true)
  );
}
