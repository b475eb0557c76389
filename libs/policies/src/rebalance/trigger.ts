import type { ServerStatus } from '@broomwagon/contracts';
import { findTier } from './tiers';

/** Fields of a server that are compared between plans. */
export type ServerView = Pick<ServerStatus, 'serverId' | 'epoch' | 'state' | 'inflight' | 'load'>;

/** Why a plan is made. `interval`: nothing has changed since the last plan, and the interval is over. */
export type RebalanceTrigger =
  'drain' | 'failure' | 'new-server' | 'preemption' | 'tier' | 'idle' | 'waiting' | 'interval';

/**
 * Returns the most important change between two views of the servers of a pool. A drain triggers while requests run on
 * the server; every other change triggers once.
 */
export function rebalanceTrigger(
  before: readonly ServerView[] | undefined,
  now: readonly ServerView[],
  tiers: readonly number[],
): RebalanceTrigger | undefined {
  if (now.some(({ state, inflight }) => state === 'draining' && inflight > 0)) return 'drain';
  if (before === undefined) return undefined;
  const known = new Map(before.map((server) => [server.serverId, server]));
  const present = new Map(now.map((server) => [server.serverId, server]));
  const was = (server: ServerView): ServerView | undefined => {
    const earlier = known.get(server.serverId);
    return earlier?.epoch === server.epoch ? earlier : undefined;
  };
  const lost = before.some((server) => server.state === 'ready' && present.get(server.serverId)?.state !== 'ready');
  if (lost) return 'failure';
  const ready = now.filter(({ state }) => state === 'ready');
  if (ready.some((server) => was(server)?.state !== 'ready')) return 'new-server';
  if (now.some((server) => (server.load?.preemptions ?? 0) > (was(server)?.load?.preemptions ?? Infinity))) {
    return 'preemption';
  }
  const [reached, reachable] = computeTiers(now, tiers);
  const [reachedBefore, reachableBefore] = computeTiers(before, tiers);
  const isCrossed = reached !== reachedBefore || reachable !== reachableBefore;
  if (reachable < reached && isCrossed) return 'tier';
  const isUneven = now.some(({ inflight }) => inflight > 1);
  if (isUneven && ready.some((server) => server.inflight === 0 && (was(server)?.inflight ?? 0) > 0)) return 'idle';
  const waits = (server: ServerView | undefined): boolean => (server?.load?.waiting ?? 0) > 0;
  if (now.some((server) => waits(server) && !waits(was(server)))) return 'waiting';
  return undefined;
}

/** Returns the largest tier in use, and the tier that an even load would need. */
function computeTiers(servers: readonly ServerView[], tiers: readonly number[]): [reached: number, reachable: number] {
  const ready = servers.filter(({ state }) => state === 'ready');
  const calls = servers.reduce((sum, { inflight }) => sum + inflight, 0);
  const reached = servers.reduce((most, { inflight }) => Math.max(most, findTier(inflight, tiers)), 0);
  return [reached, findTier(Math.ceil(calls / Math.max(1, ready.length)), tiers)];
}
