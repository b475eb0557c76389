/** An engine that a source of the pool lists: a pod, or an address of a static list. */
export interface ListedEngine {
  /** Identity of the engine: the uid of its pod, else its base URL. */
  identity: string;
  serverId: string;
  state: 'ready' | 'not-ready' | 'terminating';
}
/** A server that was registered because a source listed its engine. */
export interface DiscoveredServer {
  serverId: string;
  /** Identity under which its engine was listed. */
  listedAs: string;
  /** Takes no leases, because no source lists its engine as ready. */
  isWithheld: boolean;
  /** Is removed with its last lease. */
  isDraining: boolean;
}
export interface DiscoveryPlan {
  /** Servers that take no leases from now on, and stay registered. */
  withhold: DiscoveredServer[];
  /** Servers that take no leases from now on, and are removed with their last lease. */
  drain: DiscoveredServer[];
  /** More than `massPercent` of the servers are no longer listed: they are withheld, and none of them is removed. */
  isMass: boolean;
}

/** Fewest servers of a pool for a mass event: in a smaller pool, the replacement of one server would be an alarm. */
const MASS_SERVERS = 3;

/**
 * Plans the end of servers whose engines are not listed as ready: they get no leases from now on, and servers whose
 * engines terminate or are no longer listed are removed with their last lease.
 * @param listed engines of all sources, all of which could be read
 * @param massPercent share of the servers above which a wrong list is more likely than the end of their engines
 */
export function planDiscovery(
  listed: readonly ListedEngine[],
  known: readonly DiscoveredServer[],
  massPercent: number,
): DiscoveryPlan {
  const engines = new Map(listed.map((engine) => [`${engine.serverId} ${engine.identity}`, engine]));
  const getState = ({ serverId, listedAs }: DiscoveredServer) => engines.get(`${serverId} ${listedAs}`)?.state;
  const gone = known.filter((server) => getState(server) === undefined);
  const isMass = known.length >= MASS_SERVERS && gone.length * 100 > known.length * massPercent;
  const ending = known.filter((server) => getState(server) === 'terminating');
  const notReady = known.filter((server) => getState(server) === 'not-ready');
  return {
    withhold: [...notReady, ...(isMass ? gone : [])].filter((server) => !server.isWithheld),
    drain: [...ending, ...(isMass ? [] : gone)].filter((server) => !server.isDraining),
    isMass,
  };
}
