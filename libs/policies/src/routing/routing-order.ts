import type { RoutingPolicy } from '@broomwagon/contracts';

/** A server as a choice sees it: one of `DecisionSnapshot.servers`. */
export interface RoutingServer {
  serverId: string;
  leases: number;
  hasRoom: boolean;
  weight: number;
  weightVersion: number;
  /** Sequence of the last lease that chose it; 0 = never. */
  chosen: number;
  /** Context tokens of its leases (at least 256 each) and uncached ones it reported. */
  tokens?: number;
  /** Sessions bound to it, and leases without a session. */
  sessions?: number;
  /** Its next turn; see {@link turnAfter}. */
  turn?: number;
  labels?: Readonly<Record<string, string>>;
  /** Reported KV use, 0 to 1. */
  kvUse?: number;
  /** Leases of the acquire's group. */
  groupLeases?: number;
}

/** Above it all loads count as equal: 2^20. */
const HIGHEST_LOAD = 2 ** 20;
/** One unit of load under `least-tokens`; also what a lease without contextTokens counts. */
export const TOKENS_PER_LOAD = 256;
const TURN = 65_536;

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

/** Round robin: a lease moves the server's turn on by 65,536 / weight. */
export function turnAfter(turn: number, weight: number): number {
  return turn + Math.max(1, Math.floor(TURN / weight + 0.5));
}

/** By load; among equals the one chosen longest ago (under round-robin the turns say that), then by id. */
export function inOrder(servers: readonly RoutingServer[], policy: RoutingPolicy): RoutingServer[] {
  const tie = (server: RoutingServer) => (policy === 'round-robin' ? 0 : server.chosen);
  return servers.toSorted(
    (one, other) =>
      policyLoad(one, policy) - policyLoad(other, policy) ||
      tie(one) - tie(other) ||
      (one.serverId < other.serverId ? -1 : 1),
  );
}
