import type { Epoch, RebalanceSettings, ServerStatus } from '@broomwagon/contracts';
import {
  estimateRemaining,
  type RebalanceRequest,
  type RebalanceServer,
  type RebalanceSnapshot,
} from '@broomwagon/policies';
import { groupBy, type OtherCall, type RunningRequest } from '@broomwagon/state';

/** What a plan is made from, as it was read. */
export interface FleetState {
  servers: readonly ServerStatus[];
  running: readonly RunningRequest[];
  others: readonly OtherCall[];
}

/** An engine that uses less of its cache does not show its size. */
const LEAST_TELLING_KV_USE = 0.05;
/** A load report that is older is about other requests. */
const FRESH_LOAD_MS = 30_000;

/** Servers that may exchange requests: those of one weight version each. */
export function fleetSnapshots(events: FleetState, settings: RebalanceSettings): RebalanceSnapshot[] {
  const running = groupBy(events.running, epochName);
  const others = groupBy(events.others, epochName);
  const byVersion = groupBy(events.servers, ({ weightVersion }) => weightVersion);
  return [...byVersion.values()].map((servers) => ({
    servers: servers
      .toSorted((one, other) => (one.serverId < other.serverId ? -1 : 1))
      .map((server) =>
        snapshotOf(server, running.get(epochName(server)) ?? [], others.get(epochName(server)) ?? [], settings),
      ),
  }));
}

function epochName({ serverId, epoch }: { serverId: string; epoch: Epoch }): string {
  return `${serverId}#${epoch}`;
}

function snapshotOf(
  { serverId, epoch, state, capacity, load }: ServerStatus,
  running: readonly RunningRequest[],
  others: readonly OtherCall[],
  settings: RebalanceSettings,
): RebalanceServer {
  // In the order in which the engine took them: those that wait, or were pushed out of its cache, came last.
  const inOrder = running.toSorted((one, other) => other.ageMs - one.ageMs);
  const fresh = load !== undefined && load.ageMs < FRESH_LOAD_MS ? load : undefined;
  const runs = inOrder.length - Math.min(inOrder.length, fresh?.waiting ?? 0);
  const requests = inOrder.map((one, position) => requestOf(one, position < runs));
  const otherKvTokens = others.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
  const held = requests.slice(0, runs).reduce((sum, one) => sum + one.promptTokens + one.madeTokens, otherKvTokens);
  const kvUse = fresh?.kvUse;
  return {
    serverId,
    epoch,
    accepts: state === 'ready',
    leaving: state === 'draining' && settings.movesDrained,
    capacity,
    kvUse,
    kvCapacityTokens: kvUse !== undefined && kvUse >= LEAST_TELLING_KV_USE && held > 0 ? held / kvUse : undefined,
    otherCalls: others.length,
    otherKvTokens,
    requests,
  };
}

function requestOf(one: RunningRequest, runs: boolean): RebalanceRequest {
  const madeTokens = one.heldTokens + one.madeTokens;
  return {
    requestId: one.requestId,
    attempt: one.attempt,
    phase: runs ? 'running' : 'waiting',
    promptTokens: Math.max(0, one.contextTokens - one.heldTokens),
    madeTokens,
    remainingTokens: estimateRemaining({ madeTokens, maxTokens: one.maxTokens, longestTokens: one.longestTokens }),
    moves: one.moves,
    sinceMoveMs: one.sinceMoveMs,
  };
}
