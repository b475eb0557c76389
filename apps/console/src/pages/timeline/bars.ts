import type { Schemas } from '@broomwagon/admin-client';

type PoolEvent = Schemas['PoolEvent'];
type AttemptEvent = Extract<PoolEvent, { type: 'request.finished' | 'attempt.ended' }>;
type RunningRequest = Schemas['RequestStatus'];

/** Phases of an attempt, in their order. */
export const PHASES = ['queue', 'server-wait', 'prefill', 'decode', 'report', 'unknown'] as const;
export type Phase = (typeof PHASES)[number];
export type Outcome = 'finished' | 'running' | 'cut' | 'moved' | 'stopped' | 'returned' | 'failed' | 'dropped';

/** A span of time, in milliseconds since 1970. */
export interface Span {
  fromMs: number;
  toMs: number;
}
export interface Bar extends Span {
  requestId: string;
  attempt: string;
  /** Server of the attempt; absent if it had none, or if its worker has reported none. */
  serverId?: string;
  weightVersion?: number;
  tokens: number;
  outcome: Outcome;
  /** Phases in order, without gaps. */
  phases: (Span & { phase: Phase })[];
}
/** Time in which no request of the pool is claimed. With a server: time in which its engine is paused. */
export interface Pause extends Span {
  label: string;
  serverId?: string;
}
/** The history of a round as bars and pauses. */
export interface RoundHistory extends Span {
  bars: Bar[];
  pauses: Pause[];
  /** Time at which the round had its groups; absent while groups are missing. */
  completedAtMs?: number;
  missingEvents: number;
  /** Whether the stream still has `round.opened`, and so all attempts of the round. */
  hasBeginning: boolean;
}

/** Makes bars from the events of a round, and from the requests that run at `nowMs`. */
export function buildHistory(
  round: { openedAtMs: number; completedAtMs?: number },
  events: readonly PoolEvent[],
  running: readonly RunningRequest[],
  nowMs: number,
  missingEvents = 0,
): RoundHistory {
  const attempts = events.filter(
    (event): event is AttemptEvent => event.type === 'request.finished' || event.type === 'attempt.ended',
  );
  const bars = [...attempts.map(toBar), ...running.flatMap((request) => runningBar(request, nowMs))];
  const lastMs = bars.reduce((last, { toMs }) => Math.max(last, toMs), round.completedAtMs ?? nowMs);
  const toMs = Math.max(lastMs, round.openedAtMs + 1);
  const pauses = findPauses(events, round.openedAtMs, toMs);
  const { openedAtMs: fromMs, completedAtMs } = round;
  const hasBeginning = events.some(({ type }) => type === 'round.opened');
  return { fromMs, toMs, bars, pauses, completedAtMs, missingEvents, hasBeginning };
}

function toBar(event: AttemptEvent): Bar {
  const { requestId, attempt, atMs, run, attemptTokens } = event;
  // After a failover of Redis its clock may be behind, so times are kept in order.
  const claimedAtMs = Math.min(event.claimedAtMs ?? atMs, atMs);
  const queuedAtMs = Math.min(event.queuedAtMs ?? claimedAtMs, claimedAtMs);
  const since = (ms: number): number => Math.min(atMs, claimedAtMs + ms);
  const ends: [Phase, number][] = [['queue', claimedAtMs]];
  if (run === undefined) ends.push(['unknown', atMs]);
  else {
    ends.push(['server-wait', since(run.leasedMs)], ['prefill', since(run.firstTokenMs ?? run.endedMs)]);
    ends.push(['decode', since(run.endedMs)], ['report', atMs]);
  }
  const serverId = run?.serverId ?? event.serverId;
  const outcome = event.type === 'request.finished' ? 'finished' : event.outcome;
  const phases = buildSpans(queuedAtMs, ends);
  const weightVersion = run?.weightVersion;
  return {
    requestId,
    attempt,
    serverId,
    weightVersion,
    tokens: attemptTokens,
    outcome,
    phases,
    fromMs: queuedAtMs,
    toMs: atMs,
  };
}

function runningBar({ requestId, attempt, state, ageMs, serverId, tokenCount }: RunningRequest, nowMs: number): Bar[] {
  if (ageMs === undefined) return [];
  const fromMs = nowMs - ageMs;
  const phase: Phase = state === 'claimed' ? 'server-wait' : 'decode';
  const phases = [{ phase, fromMs, toMs: nowMs }];
  return [{ requestId, attempt, serverId, tokens: tokenCount, outcome: 'running', phases, fromMs, toMs: nowMs }];
}

function buildSpans(startMs: number, ends: readonly [Phase, number][]): Bar['phases'] {
  const spans: Bar['phases'] = [];
  let fromMs = startMs;
  for (const [phase, toMs] of ends) {
    if (toMs <= fromMs) continue;
    spans.push({ phase, fromMs, toMs });
    fromMs = toMs;
  }
  return spans;
}

/** Finds pauses of the pool and of single engines. A pause may have begun before the round was opened. */
function findPauses(events: readonly PoolEvent[], openedAtMs: number, endMs: number): Pause[] {
  const open = new Map<string, Pause>();
  const pauses: Pause[] = [];
  const begin = (key: string, pause: Omit<Pause, 'toMs'>) => open.set(key, { ...pause, toMs: endMs });
  const end = (key: string, toMs: number, pause: Omit<Pause, 'toMs' | 'fromMs'>) => {
    pauses.push({ fromMs: openedAtMs, ...pause, ...open.get(key), toMs });
    open.delete(key);
  };
  for (const event of events) {
    const { type, atMs } = event;
    if (type === 'weights.begun') {
      const label = `weights ${event.fromVersion} → ${event.version}, ${event.mode}`;
      begin(event.syncId, { label, fromMs: atMs });
    } else if (type === 'weights.committed' || type === 'weights.rolled-back') {
      end(event.syncId, atMs, { label: `weights ${event.version}` });
    } else if (type === 'server.paused' || type === 'server.resumed') {
      const { serverId, syncId } = event;
      const pause = { label: `${serverId} paused`, serverId };
      if (type === 'server.paused') begin(`${syncId}/${serverId}`, { ...pause, fromMs: atMs });
      else end(`${syncId}/${serverId}`, atMs, pause);
    }
  }
  return [...pauses, ...open.values()];
}
