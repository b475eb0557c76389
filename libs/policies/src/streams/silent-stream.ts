import type { StreamPace } from './estimate-unsent';

/** A stream without events, and what is known of its engine. */
export interface Silence {
  /** Time since the last event, or since the request, without the time in which the engine was paused. */
  silentMs: number;
  /** The stream has had a token. */
  hasTokens: boolean;
  pace: StreamPace;
  /** Time to the first token. */
  firstTokenTimeoutMs: number;
  /** Time between two events. */
  stallTimeoutMs: number;
  /** Whether the engine's own count of tokens changes; undefined: the engine reports none. */
  isEngineAtWork?: boolean;
}

/** Intervals that a stream may be late. */
const LATE_INTERVALS = 4;
/**
 * Factor of the time that a silent stream gets while its engine generates for others. Its request may be preempted and
 * wait; but a request that the engine has lost would wait for ever.
 */
const AT_WORK_FACTOR = 4;

/** Silence that needs no explanation: at least the time-out, and the time of some events at the pace of the stream. */
export function allowedSilenceMs(silence: Omit<Silence, 'silentMs' | 'isEngineAtWork'>): number {
  const { hasTokens, pace, firstTokenTimeoutMs, stallTimeoutMs } = silence;
  if (!hasTokens) return firstTokenTimeoutMs;
  const { interval, tokensPerSecond } = pace;
  const gapMs = tokensPerSecond === undefined ? 0 : (1_000 * interval) / tokensPerSecond;
  return Math.max(stallTimeoutMs, LATE_INTERVALS * gapMs);
}

/** Whether a silent stream has stalled. The engine's own report counts for more than the silence of one stream. */
export function hasStalled(silence: Silence): boolean {
  const factor = silence.isEngineAtWork === true ? AT_WORK_FACTOR : 1;
  return silence.silentMs >= factor * allowedSilenceMs(silence);
}
