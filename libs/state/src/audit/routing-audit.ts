import { checkLeases, checkLeaseSets, checkRequestLists } from './lease-checks';
import type { PoolLook } from './pool-look';
import { checkResidency } from './residency-checks';
import { checkServers } from './server-checks';
import { checkCounters, checkSessions, checkWorkers } from './sum-checks';
import { checkWaiters } from './waiter-checks';

export interface RoutingCounts {
  servers: number;
  leases: number;
  sessions: number;
  workers: number;
  /** Leases of all current server epochs, by the sizes of their sets. */
  serverLoads: number;
  /** Leases of all live worker epochs, by the sizes of their sets. */
  workerLoads: number;
}

/**
 * Checks all routing state of a pool once: leases, their sets by server and worker and their lists by request, servers
 * and their indexes, sessions, worker digests, waiters, and the sums that routing policies and admissions use.
 */
export async function auditRouting(look: PoolLook): Promise<RoutingCounts> {
  const leases = await checkLeases(look);
  await checkLeaseSets(look);
  await checkRequestLists(look);
  const servers = await checkServers(look);
  const { bound: sessions, resident } = await checkSessions(look);
  const workers = await checkWorkers(look);
  await checkWaiters(look);
  await checkCounters(look, leases, sessions);
  await checkResidency(look, resident);
  return {
    servers: servers.size,
    leases: leases.length,
    sessions: [...sessions.values()].reduce((sum, ids) => sum + ids.size, 0),
    workers: workers.size,
    serverLoads: sumLoads(servers),
    workerLoads: sumLoads(workers),
  };
}

function sumLoads(loads: Map<string, number>): number {
  return [...loads.values()].reduce((sum, load) => sum + load, 0);
}
