import type { RoutingPolicy, SnapshotServer } from '@broomwagon/contracts';
import { consistentHash } from './consistent-hash';
import { leastInflight } from './least-inflight';
import { leastSessions } from './least-sessions';
import { leastTokens } from './least-tokens';
import type { Policy } from './policy';
import { powerOfTwo } from './power-of-two';
import { random } from './random';
import { roundRobin } from './round-robin';

/** Every policy. */
export const POLICIES: Record<RoutingPolicy, Policy> = {
  'least-inflight': leastInflight,
  'least-tokens': leastTokens,
  'least-sessions': leastSessions,
  'round-robin': roundRobin,
  'consistent-hash': consistentHash,
  random,
  'power-of-two': powerOfTwo,
};

/** Orders servers by load; among equals by the time since they were last chosen, then by id. */
export function inOrder(servers: readonly SnapshotServer[], { load }: Policy): SnapshotServer[] {
  return servers.toSorted(
    (one, other) => load(one) - load(other) || one.chosen - other.chosen || (one.serverId < other.serverId ? -1 : 1),
  );
}
