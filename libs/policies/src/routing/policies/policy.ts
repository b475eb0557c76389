import type { DecisionBranch, SnapshotServer } from '@broomwagon/contracts';

/** Fields of an acquire that a policy may choose by. */
export interface PolicyRequest {
  acquireId: string;
  requestId: string;
  sessionId?: string;
  groupId?: string;
}

/** A routing policy; its Lua in `libs/state/src/routing/policies` does the same. */
export interface Policy {
  /** Load of a server: the lowest is first. */
  load(server: SnapshotServer): number;
  /**
   * Chooses a server instead of the order of the loads.
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

/** Amount per weight, in whole units. */
export function weighed(amount: number, weight: number): number {
  return Math.min(HIGHEST_LOAD, Math.floor(amount / weight));
}
