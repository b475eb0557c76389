import type {
  DecisionBranch,
  DecisionSnapshot,
  PoolSettings,
  RoutingPolicy,
  SnapshotServer,
} from '@broomwagon/contracts';
import { inOrder, POLICIES } from './policies';
import { leastInflight } from './policies/by-load';
import type { Policy, PolicyRequest } from './policies/policy';
import { fits, type Restrictions } from './restrictions';

/** Requirements of an acquire. */
export interface RoutingRequest extends Restrictions, PolicyRequest {
  contextTokens?: number;
  boundServerId?: string;
}
/** All inputs of a choice. */
export interface RoutingSnapshot {
  settings: PoolSettings;
  request: RoutingRequest;
  /** Server of the session, if that server takes leases and has the same epoch. */
  boundTo?: string;
  /** Server of `boundServerId`, if that server can take the lease. */
  namedServer?: string;
  newestWeightVersion: number;
  /** Servers that take leases, also full servers. */
  servers: readonly SnapshotServer[];
}
export interface ChosenServer {
  server: string;
  branch: DecisionBranch;
  /** Branch that chose the server, if the named server could not take the lease. */
  via?: DecisionBranch;
  /** Load of the server before the choice, in the unit of the policy. */
  key: number;
  /**
   * The first four servers with room in the order of the policy. A choice by load omits servers that do not fit. A draw
   * or hash has one server.
   */
  best: { serverId: string; key: number }[];
  /** Servers with room. */
  eligible: number;
  /** Lowest load of all servers with room; only for `round-robin`. */
  reached?: number;
}
/** Server that an acquire gets. `waitsFor`: server of the session, if the acquire waits for this server only. */
export type Choice = ChosenServer | { waitsFor?: string };

interface Found extends Pick<ChosenServer, 'branch' | 'reached'> {
  server: SnapshotServer;
  /** Servers of the choice, best first; absent if the order did not decide. */
  order?: readonly SnapshotServer[];
}

/** Chooses a server by the rules in README.md. libs/state/src/routing/choose.lua does the same. */
export function chooseServer(snapshot: RoutingSnapshot): Choice {
  const { namedServer, request } = snapshot;
  if (namedServer !== undefined) return namedChoice(snapshot.servers, namedServer, snapshot.settings.policy);
  const choice = chooseByRules(snapshot);
  if (request.boundServerId === undefined || !('server' in choice)) return choice;
  return { ...choice, branch: 'bound-unavailable', via: choice.branch };
}

function chooseByRules(snapshot: RoutingSnapshot): Choice {
  const { settings, request, servers } = snapshot;
  const policy = POLICIES[settings.policy ?? 'least-inflight'];
  const fit = (server: SnapshotServer) => fits(server, request, snapshot.newestWeightVersion);
  const withRoom = servers.filter((server) => server.hasRoom);
  const receipt = (found: Found) => buildReceipt(found, withRoom, policy);
  const free = chooseFree(snapshot, policy, fit);
  const bound = servers.find((server) => server.serverId === snapshot.boundTo);
  if (bound && fit(bound)) {
    const { affinityBreakMargin: margin = 'never', affinityBreakMaxContextTokens: longest = Infinity } = settings;
    const mayLeave = margin !== 'never' && (request.contextTokens ?? 0) <= longest;
    if (mayLeave && free && leastInflight.load(bound) > leastInflight.load(free.server) + margin) {
      return receipt({ ...free, branch: 'sticky-broken' });
    }
    return bound.hasRoom ? receipt({ server: bound, branch: 'sticky-hit' }) : { waitsFor: bound.serverId };
  }
  return free ? receipt(free) : {};
}

/** Returns the choice of a named server, which wins over session and policy. */
export function namedChoice(
  servers: readonly SnapshotServer[],
  serverId: string,
  policy: RoutingPolicy = 'least-inflight',
): ChosenServer {
  const server = servers.find((one) => one.serverId === serverId)!;
  return buildReceipt(
    { server, branch: 'bound' },
    servers.filter((one) => one.hasRoom),
    POLICIES[policy],
  );
}

function buildReceipt(found: Found, withRoom: readonly SnapshotServer[], policy: Policy): ChosenServer {
  const { server, branch, order = inOrder(withRoom, policy), reached } = found;
  return {
    server: server.serverId,
    branch,
    key: policy.load(server),
    best: order.slice(0, 4).map((one) => ({ serverId: one.serverId, key: policy.load(one) })),
    eligible: withRoom.length,
    reached,
  };
}

/** Repeats a recorded choice; undefined if the snapshot is truncated or there was no server. */
export function replayDecision(snapshot: DecisionSnapshot): ChosenServer | undefined {
  if (snapshot.truncated) return undefined;
  const choice = chooseServer(snapshot);
  return 'server' in choice ? choice : undefined;
}

function chooseFree(
  { settings, request, servers }: RoutingSnapshot,
  policy: Policy,
  fit: (server: SnapshotServer) => boolean,
): Found | undefined {
  const withRoom = inOrder(
    servers.filter((server) => server.hasRoom),
    policy,
  );
  if (policy.choose) {
    const server = policy.choose(withRoom, fit, request);
    return server && { server, branch: policy.branch!, order: [server] };
  }
  const order = withRoom.filter(fit);
  const together = chooseByAffinity(order, settings, request);
  if (together) return { server: together, branch: 'group-affinity' };
  const first = order[0];
  if (!first) return undefined;
  if (policy.branch) return { server: first, branch: policy.branch, order, reached: policy.load(withRoom[0]!) };
  const lowest = order.filter((server) => policy.load(server) === policy.load(first));
  const apart = lowest.find((server) => !server.groupLeases) ?? first;
  if (apart !== first) return { server: apart, branch: 'group-spread', order };
  return { server: first, branch: lowest.length > 1 ? 'tie' : 'least-loaded', order };
}

/**
 * Chooses, under affinity, the server with the most leases of the group below the cap; among equals, the server that
 * was chosen longest ago.
 */
function chooseByAffinity(
  candidates: readonly SnapshotServer[],
  settings: PoolSettings,
  request: RoutingRequest,
): SnapshotServer | undefined {
  const { groupPlacement = 'group-spread', groupAffinityCap: cap = 8 } = settings;
  const { groupSpreadBelowTokens: short = 2_048, groupSpreadAboveKvUse: pressed = 0.7 } = settings;
  if (groupPlacement === 'group-spread') return undefined;
  if (groupPlacement === 'auto' && (request.contextTokens ?? 0) < short) return undefined;
  const countGroupLeases = (server: SnapshotServer) => server.groupLeases ?? 0;
  const chosen = candidates
    .filter((server) => countGroupLeases(server) > 0 && countGroupLeases(server) < cap)
    .sort(
      (one, other) =>
        countGroupLeases(other) - countGroupLeases(one) ||
        one.chosen - other.chosen ||
        (one.serverId < other.serverId ? -1 : 1),
    )[0];
  return groupPlacement === 'auto' && (chosen?.kvUse ?? 0) > pressed ? undefined : chosen;
}
