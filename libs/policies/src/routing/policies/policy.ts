import type { DecisionBranch, SnapshotServer } from '@broomwagon/contracts';

/** A server as a choice sees it. */
export interface RoutingServer extends SnapshotServer {
  /** Models and adapters that its engine lists; a snapshot has `lacksModel` instead. */
  models?: readonly string[];
}

/** What of an acquire a policy may choose by. */
export interface PolicyRequest {
  acquireId: string;
  requestId: string;
  sessionId?: string;
  groupId?: string;
}

/** A routing policy: what its Lua in `libs/state/src/routing/policies` does. */
export interface Policy {
  /** Load of a server: the lowest is first. */
  load(server: RoutingServer): number;
  /**
   * Chooses instead of the order of the loads.
   *
   * @param withRoom in the order of the policy
   */
  choose?(
    withRoom: readonly RoutingServer[],
    fits: (server: RoutingServer) => boolean,
    request: PolicyRequest,
  ): RoutingServer | undefined;
  /** Of a free choice; absent: `tie` or `least-loaded`. */
  branch?: DecisionBranch;
}

/** Above it all loads count as equal: 2^20. */
const HIGHEST_LOAD = 2 ** 20;

/** Amount per weight, in whole units. */
export function weighed(amount: number, weight: number): number {
  return Math.min(HIGHEST_LOAD, Math.floor(amount / weight));
}
