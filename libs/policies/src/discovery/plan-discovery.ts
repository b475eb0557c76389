/** What the sources of a pool list of one engine: a pod, or the address of a static list. */
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
  /** It takes no leases, because no source lists its engine as ready. */
  isWithheld: boolean;
  /** It is removed with its last lease. */
  isDraining: boolean;
}
export interface DiscoveryPlan {
  /** Servers that take no leases from now on, and stay registered. */
  withhold: DiscoveredServer[];
  /** Servers that take no leases from now on, and are removed with their last lease. */
  drain: DiscoveredServer[];
  /** More servers than `massPercent` are listed no more: they are withheld, and none of them is removed. */
  isMass: boolean;
}

/** Fewest servers of a pool that can vanish at once: one that is replaced is no alarm. */
const MASS_SERVERS = 3;

/**
 * What ends on servers whose engines are not listed as ready: they get no leases at once, and those of engines that end
 * or are listed no more are removed with their last lease.
 * @param listed of all sources, all of which could be read
 * @param massPercent share of the servers above which a wrong list is more likely than the end of their engines
 */
export function planDiscovery(
  listed: readonly ListedEngine[],
  known: readonly DiscoveredServer[],
  massPercent: number,
): DiscoveryPlan {
  const engines = new Map(listed.map((engine) => [`${engine.serverId} ${engine.identity}`, engine]));
  const stateOf = ({ serverId, listedAs }: DiscoveredServer) => engines.get(`${serverId} ${listedAs}`)?.state;
  const gone = known.filter((server) => stateOf(server) === undefined);
  const isMass = known.length >= MASS_SERVERS && gone.length * 100 > known.length * massPercent;
  const ending = known.filter((server) => stateOf(server) === 'terminating');
  const notReady = known.filter((server) => stateOf(server) === 'not-ready');
  return {
    withhold: [...notReady, ...(isMass ? gone : [])].filter((server) => !server.isWithheld),
    drain: [...ending, ...(isMass ? [] : gone)].filter((server) => !server.isDraining),
    isMass,
  };
}
