/** An engine that a source of the pool lists: a pod, or an address of a static list. */
export interface ListedEngine {
  /** Identity of the engine: the uid of the pod, or the base URL of a listed address. */
  identity: string;
  serverId: string;
  state: 'ready' | 'not-ready' | 'terminating';
}
/** A server that was registered because a source listed its engine. */
export interface DiscoveredServer {
  serverId: string;
  /** Identity under which the engine was listed. */
  listedAs: string;
  /** True if the server takes no leases because no source lists the engine as ready. */
  isWithheld: boolean;
  /** True if the server is removed with its last lease. */
  isDraining: boolean;
}
export interface DiscoveryPlan {
  /** Servers that take no leases from now on, and stay registered. */
  withhold: DiscoveredServer[];
  /** Servers that take no leases from now on, and are removed with their last lease. */
  drain: DiscoveredServer[];
  /**
   * True if more than `massPercent` of the servers are no longer listed. Such servers are withheld, and none is
   * removed.
   */
  isMass: boolean;
}

/** Minimum servers of a pool for `isMass`. In a smaller pool, the replacement of one server would be an alarm. */
const MASS_SERVERS = 3;

/**
 * Plans the end of servers. A server gets no leases while its engine is not listed as ready. A server is removed with
 * its last lease when its engine terminates or is no longer listed.
 * @param listed engines of all sources; call this function only if every source could be read
 * @param massPercent share of servers that are no longer listed, above which the list is probably wrong
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
