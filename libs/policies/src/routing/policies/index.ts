import type { RoutingPolicy, SnapshotServer } from '@broomwagon/contracts';
import { powerOfTwo, random } from './by-draw';
import { leastInflight, leastKv, leastSessions, leastTokens, roundRobin } from './by-load';
import { consistentHash } from './consistent-hash';
import type { Policy } from './policy';

export const POLICIES: Record<RoutingPolicy, Policy> = {
  'least-inflight': leastInflight,
  'least-tokens': leastTokens,
  'least-sessions': leastSessions,
  'least-kv': leastKv,
  'round-robin': roundRobin,
  'consistent-hash': consistentHash,
  random,
  'power-of-two': powerOfTwo,
};

/** Orders servers by load, then by the last choice (longest ago first), then by id. */
export function inOrder(servers: readonly SnapshotServer[], { load }: Policy): SnapshotServer[] {
  return servers.toSorted(
    (one, other) => load(one) - load(other) || one.chosen - other.chosen || (one.serverId < other.serverId ? -1 : 1),
  );
}
