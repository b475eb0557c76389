import type { Epoch, RebalanceSettings, ServerStatus } from '@broomwagon/contracts';
import {
  estimateRemaining,
  expectedLongest,
  type RebalanceRequest,
  type RebalanceServer,
  type RebalanceSnapshot,
  type RequestPhase,
} from '@broomwagon/policies';
import { groupBy, type OtherCall, type RunningRequest } from '@broomwagon/state';

export interface FleetState {
  servers: readonly ServerStatus[];
  running: readonly RunningRequest[];
  others: readonly OtherCall[];
}

/** Minimum KV use from which the size of a KV cache can be computed. */
const MIN_KV_USE = 0.05;
/** Label of a server whose KV cache is in a shared store. The value is the name of the store. */
const KV_STORE_LABEL = 'kv-store';
/** Maximum age of a load report, milliseconds: an older report describes other requests. */
const FRESH_LOAD_MS = 30_000;

/** Snapshots of servers that may exchange requests: one for each weight version. */
export function fleetSnapshots(events: FleetState, settings: RebalanceSettings): RebalanceSnapshot[] {
  const running = groupBy(events.running, epochName);
  const unfinished = new Map<string, number>();
  for (const one of events.running) {
    const group = toGroupKey(one);
    unfinished.set(group, Math.max(unfinished.get(group) ?? 0, sumGeneratedTokens(one)));
  }
  const others = groupBy(events.others, epochName);
  const byVersion = groupBy(events.servers, ({ weightVersion }) => weightVersion);
  return [...byVersion.values()].map((servers) => ({
    servers: servers
      .toSorted((one, other) => (one.serverId < other.serverId ? -1 : 1))
      .map((server) =>
        buildSnapshot(
          server,
          computePhases(running.get(epochName(server)) ?? [], server.load).map(({ one, phase }) =>
            toRebalanceRequest(one, phase, unfinished.get(toGroupKey(one)) ?? 0),
          ),
          others.get(epochName(server)) ?? [],
          settings,
        ),
      ),
  }));
}

function epochName({ serverId, epoch }: { serverId: string; epoch: Epoch }): string {
  return `${serverId}#${epoch}`;
}

/**
 * Phases of the requests of a server, the oldest request first. The engine reports how many requests wait, not which.
 * First the latest requests with a silent stream count as waiting, up to the reported number. If fewer streams are
 * silent, the latest requests without tokens count too, because engines admit first in, first out.
 */
function computePhases(
  running: readonly RunningRequest[],
  load: ServerStatus['load'],
): { one: RunningRequest; phase: RequestPhase }[] {
  const inOrder = running.toSorted((one, other) => other.ageMs - one.ageMs);
  const report = freshLoad(load);
  const waiting = new Set<RunningRequest>();
  // A request in a long prefill is silent but runs, so the number of the engine is the limit.
  const mostWaiting = report?.waiting ?? Infinity;
  for (const one of inOrder.toReversed()) if (one.waits && waiting.size < mostWaiting) waiting.add(one);
  for (const one of inOrder.toReversed()) {
    if (waiting.size >= (report?.waiting ?? 0)) break;
    if (one.madeTokens === 0) waiting.add(one);
  }
  return inOrder.map((one) => ({ one, phase: toPhase(one, waiting.has(one)) }));
}

function toPhase({ madeTokens }: RunningRequest, isWaiting: boolean): RequestPhase {
  if (!isWaiting) return 'running';
  return madeTokens > 0 ? 'preempted' : 'waiting';
}

function freshLoad(load: ServerStatus['load']): ServerStatus['load'] {
  return load !== undefined && load.ageMs < FRESH_LOAD_MS ? load : undefined;
}

function buildSnapshot(
  { serverId, epoch, state, capacity, load, labels }: ServerStatus,
  requests: readonly RebalanceRequest[],
  others: readonly OtherCall[],
  settings: RebalanceSettings,
): RebalanceServer {
  const otherKvTokens = others.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
  const held = requests
    .filter(({ phase }) => phase === 'running')
    .reduce((sum, one) => sum + one.promptTokens + one.madeTokens, otherKvTokens);
  const kvUse = freshLoad(load)?.kvUse;
  return {
    serverId,
    epoch,
    accepts: state === 'ready',
    leaving: state === 'draining' && settings.movesDrained,
    capacity,
    kvUse,
    kvCapacityTokens: kvUse !== undefined && kvUse >= MIN_KV_USE && held > 0 ? held / kvUse : undefined,
    otherCalls: others.length,
    otherKvTokens,
    kvStore: labels?.[KV_STORE_LABEL],
    requests,
  };
}

function toRebalanceRequest(one: RunningRequest, phase: RequestPhase, unfinishedTokens: number): RebalanceRequest {
  const { requestId, attempt, maxTokens, longestTokens, samples, known, moves, sinceMoveMs } = one;
  const rememberedTokens = known === undefined ? 0 : expectedLongest(known, samples, maxTokens);
  const madeTokens = sumGeneratedTokens(one);
  return {
    requestId,
    attempt,
    phase,
    promptTokens: Math.max(0, one.contextTokens - one.heldTokens),
    madeTokens,
    remainingTokens: estimateRemaining({ madeTokens, maxTokens, longestTokens, rememberedTokens, unfinishedTokens }),
    moves,
    sinceMoveMs,
  };
}

function sumGeneratedTokens({ heldTokens, madeTokens }: RunningRequest): number {
  return heldTokens + madeTokens;
}

/** `<job>/<group>` of `<job>/<group>/<index>`. */
function toGroupKey({ requestId }: RunningRequest): string {
  return requestId.slice(0, requestId.lastIndexOf('/'));
}
