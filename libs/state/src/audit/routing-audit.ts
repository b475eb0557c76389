import { checkLeases, checkLeaseSets, checkRequestLists } from './lease-checks';
import type { PoolLook } from './pool-look';
import { checkServers } from './server-checks';
import { checkCounters, checkSessions, checkWorkers } from './sum-checks';
import { checkWaiters } from './waiter-checks';

/** How much there is. */
export interface RoutingCounts {
  servers: number;
  leases: number;
  sessions: number;
  workers: number;
  /** Leases of all current server epochs, as their sets have it. */
  serverLoads: number;
  /** Leases of all live worker epochs, as their sets have it. */
  workerLoads: number;
}

/**
 * Looks once at everything the load-balancer keeps of a pool: leases, their sets by server and worker and their lists
 * by request, servers and their indexes, sessions, worker digests, waiters, and the sums the policies go by.
 */
export async function auditRouting(look: PoolLook): Promise<RoutingCounts> {
  const leases = await checkLeases(look);
  await checkLeaseSets(look);
  await checkRequestLists(look);
  const servers = await checkServers(look);
  const sessions = await checkSessions(look);
  const workers = await checkWorkers(look);
  await checkWaiters(look);
  await checkCounters(look, leases, sessions);
  return {
    servers: servers.size,
    leases: leases.length,
    sessions: [...sessions.values()].reduce((sum, ids) => sum + ids.size, 0),
    workers: workers.size,
    serverLoads: sumOf(servers),
    workerLoads: sumOf(workers),
  };
}

function sumOf(loads: Map<string, number>): number {
  return [...loads.values()].reduce((sum, load) => sum + load, 0);
}
