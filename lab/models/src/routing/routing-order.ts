import type { RoutingPolicy, SnapshotServer } from '@broomwagon/contracts';

/** A server as a choice sees it. */
export type RoutingServer = SnapshotServer;

/** Above it all loads count as equal: 2^20. */
const HIGHEST_LOAD = 2 ** 20;
/** One unit of load under `least-tokens`; also what a lease without contextTokens counts. */
export const TOKENS_PER_LOAD = 256;
const TURN = 4_096;

/** Amount per weight, in whole units. */
export function weighed(amount: number, weight: number): number {
  return Math.min(HIGHEST_LOAD, Math.floor(amount / weight));
}

/** Load of a server in the unit of the policy: the lowest is first. */
export function policyLoad(server: RoutingServer, policy: RoutingPolicy): number {
  if (policy === 'least-tokens') return weighed((server.tokens ?? 0) / TOKENS_PER_LOAD, server.weight);
  if (policy === 'least-sessions') return weighed(server.sessions ?? 0, server.weight);
  if (policy === 'round-robin') return server.turn ?? 0;
  return weighed(server.leases, server.weight);
}

/** Round robin: a lease moves the server's turn on by 4,096 / weight. */
export function turnAfter(turn: number, weight: number): number {
  return turn + Math.max(1, Math.floor(TURN / weight + 0.5));
}

/** By load; among equals the one chosen longest ago, then by id. */
export function inOrder(servers: readonly RoutingServer[], policy: RoutingPolicy): RoutingServer[] {
  return servers.toSorted(
    (one, other) =>
      policyLoad(one, policy) - policyLoad(other, policy) ||
      one.chosen - other.chosen ||
      (one.serverId < other.serverId ? -1 : 1),
  );
}
