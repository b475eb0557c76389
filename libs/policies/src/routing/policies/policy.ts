import type { DecisionBranch, SnapshotServer } from '@broomwagon/contracts';

/** Fields of an acquire that a policy may choose by. */
export interface PolicyRequest {
  acquireId: string;
  requestId: string;
  sessionId?: string;
  groupId?: string;
}

/** A routing policy. `libs/state/src/routing/policies` has the same policy in Lua. */
export interface Policy {
  /** Load of a server. The server with the lowest load is first. */
  load(server: SnapshotServer): number;
  /**
   * Chooses a server; absent: the first server in the order of loads is chosen.
   *
   * @param withRoom servers with room, in the order of the policy
   */
  choose?(
    withRoom: readonly SnapshotServer[],
    fits: (server: SnapshotServer) => boolean,
    request: PolicyRequest,
  ): SnapshotServer | undefined;
  /** Branch of a free choice; absent: `tie` or `least-loaded`. */
  branch?: DecisionBranch;
}

/** Load above which all loads count as equal: 2^20. */
const HIGHEST_LOAD = 2 ** 20;

/** Returns amount / weight in whole units. */
export function weighed(amount: number, weight: number): number {
  return Math.min(HIGHEST_LOAD, Math.floor(amount / weight));
}
