import { count, duration, percent, plainId } from '../../components/format';
import type { Bar, Pause, Phase, RoundHistory } from './bars';

/** One reason for the duration of a round. */
export interface Reason {
  title: string;
  /** Share of the duration of the round, 0 to 1. */
  share: number;
  text: string;
}

const LAST_SHARE = 0.1;
/** Minimum share of pauses for a reason: shorter pauses explain nothing. */
const MIN_SHARE = 0.005;

/**
 * Reasons why a completed round was slow, sorted by their share of its duration. The samples that have finished do not
 * tell what an open round waits for, so an open round has no reasons.
 */
export function explain(history: RoundHistory): Reason[] {
  const { fromMs, completedAtMs: endMs, bars, pauses } = history;
  if (endMs === undefined || bars.length === 0) return [];
  const roundMs = Math.max(1, endMs - fromMs);
  const reasons = [
    lastSamples(bars, fromMs, endMs),
    idleSlots(bars, fromMs, endMs),
    waits(bars, roundMs),
    weights(pauses, fromMs, endMs),
  ];
  const found = reasons.filter((reason) => reason !== undefined);
  return found.sort((one, other) => other.share - one.share);
}

/** Time for which changes of weights stopped the pool or paused engines. */
function weights(pauses: readonly Pause[], fromMs: number, endMs: number): Reason | undefined {
  const sumOverlap = (some: readonly Pause[]): number =>
    some.reduce((sum, one) => sum + overlapMs(one, fromMs, endMs), 0);
  const ofPool = pauses.filter(({ serverId }) => serverId === undefined);
  const ofServers = pauses.filter(({ serverId }) => serverId !== undefined);
  const servers = new Set(ofServers.map(({ serverId }) => serverId)).size;
  const [poolMs, serverMs] = [sumOverlap(ofPool), sumOverlap(ofServers) / Math.max(1, servers)];
  const share = Math.max(poolMs, serverMs) / Math.max(1, endMs - fromMs);
  if (share < MIN_SHARE) return undefined;
  const changes = `${ofPool.length} ${ofPool.length === 1 ? 'change' : 'changes'} of weights`;
  const texts = [
    ...(ofPool.length > 0 ? [`${changes} took ${duration(poolMs)}; in that time no request was claimed.`] : []),
    ...(servers > 0 ? [`The engines of ${count(servers)} servers were paused for ${duration(serverMs)} each.`] : []),
  ];
  return { title: 'Weights', share, text: texts.join(' ') };
}

function lastSamples(bars: readonly Bar[], fromMs: number, endMs: number): Reason | undefined {
  const finished = bars
    .filter(({ outcome, toMs }) => outcome === 'finished' && toMs <= endMs)
    .sort((one, other) => one.toMs - other.toMs);
  const last = finished.at(-1);
  if (last === undefined) return undefined;
  const lastCount = Math.max(1, Math.floor(LAST_SHARE * finished.length));
  const early = finished.at(-1 - lastCount);
  const lateMs = endMs - (early?.toMs ?? fromMs);
  const path = bars.filter(({ requestId }) => requestId === last.requestId);
  const phaseMs = (phase: Phase): number =>
    path.reduce(
      (sum, { phases }) => sum + phases.reduce((part, one) => part + (one.phase === phase ? length(one) : 0), 0),
      0,
    );
  const tokens = path.reduce((sum, bar) => sum + bar.tokens, 0);
  const attempts = path.length === 1 ? 'one attempt' : `${path.length} attempts`;
  const text =
    `The last ${lastCount > 1 ? `${count(lastCount)} ` : ''}of ${count(finished.length)} samples took ` +
    `${duration(lateMs)}. The very last, ${plainId(last.requestId)} on ${plainId(last.serverId ?? 'no server')}, ` +
    `generated ${count(tokens)} tokens in ${attempts}: ${duration(phaseMs('decode'))} of decoding, ` +
    `${duration(phaseMs('prefill'))} of prefill, ${duration(phaseMs('queue') + phaseMs('server-wait'))} of waiting.`;
  return { title: 'The last tenth of the samples', share: lateMs / Math.max(1, endMs - fromMs), text };
}

/** Share of idle slots, if the servers have as many slots as they ran requests at their busiest moment. */
function idleSlots(bars: readonly Bar[], fromMs: number, endMs: number): Reason | undefined {
  const changes: [atMs: number, by: number][] = [];
  let busyMs = 0;
  for (const bar of bars) {
    const span = onServer(bar);
    if (span === undefined || span.fromMs >= endMs) continue;
    busyMs += overlapMs(span, fromMs, endMs);
    changes.push([span.fromMs, 1], [span.toMs, -1]);
  }
  changes.sort(([one, a], [other, b]) => one - other || a - b);
  let [now, slots] = [0, 0];
  for (const [, by] of changes) slots = Math.max(slots, (now += by));
  if (slots === 0) return undefined;
  const roundMs = Math.max(1, endMs - fromMs);
  const share = Math.max(0, 1 - busyMs / (slots * roundMs));
  const mean = busyMs / roundMs;
  const text = `Servers ran ${count(slots)} requests at once at most, and ${mean.toFixed(1)} on average.`;
  return { title: 'Idle slots', share, text };
}

function waits(bars: readonly Bar[], roundMs: number): Reason {
  const waited = bars
    .map(({ phases }) =>
      phases.reduce((sum, one) => sum + (one.phase === 'queue' || one.phase === 'server-wait' ? length(one) : 0), 0),
    )
    .sort((one, other) => one - other);
  const mean = waited.reduce((sum, ms) => sum + ms, 0) / waited.length;
  const worst = waited[Math.ceil(0.99 * waited.length) - 1]!;
  const text =
    `An attempt waited ${duration(mean)} for a worker and a server on average; ` +
    `one in a hundred waited ${duration(worst)}.`;
  return { title: 'Queues', share: Math.min(1, mean / roundMs), text };
}

/** The part of an attempt that was on a server; undefined without such a part. */
export function onServer({ phases, serverId }: Bar): { fromMs: number; toMs: number } | undefined {
  const served = phases.filter(({ phase }) => phase === 'prefill' || phase === 'decode' || phase === 'unknown');
  if (serverId === undefined || served.length === 0) return undefined;
  return { fromMs: served[0]!.fromMs, toMs: served.at(-1)!.toMs };
}

export function formatReason({ title, share, text }: Reason): string {
  return `${title}, ${percent(share)} of the round: ${text}`;
}

function length({ fromMs, toMs }: { fromMs: number; toMs: number }): number {
  return toMs - fromMs;
}

function overlapMs(span: { fromMs: number; toMs: number }, fromMs: number, endMs: number): number {
  return Math.max(0, Math.min(span.toMs, endMs) - Math.max(span.fromMs, fromMs));
}
