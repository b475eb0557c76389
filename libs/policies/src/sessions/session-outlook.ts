/**
 * What a pool has learned about its sessions, by powers of two: an entry of bin `b` counts values from 2^b to
 * 2^(b+1) - 1.
 */
export interface SessionCounts {
  /** Sessions whose context has reached the bin, tokens. */
  reached: Readonly<Record<number, number>>;
  /** Sessions that ended with a context of the bin, tokens. */
  ended: Readonly<Record<number, number>>;
  /** Times between two turns of a session, milliseconds. */
  gaps: Readonly<Record<number, number>>;
}

/** What to expect of the sessions of a pool. */
export interface SessionOutlook {
  /** Tokens by which the context of a session in this bin still grows, from {@link MIN_CONTEXT_BIN} on. */
  growth: readonly number[];
  /** Share of the sessions between two turns that are away for longer than 2^index milliseconds. */
  away: readonly number[];
  /** A session that is away for longer than this is not expected to return, milliseconds. */
  staleMs: number;
}

/** Bin of the contexts below 512 tokens, and of the contexts of 2^24 tokens and more. */
export const MIN_CONTEXT_BIN = 8;
export const MAX_CONTEXT_BIN = 24;
/** Gaps from 2^23 milliseconds (2.3 h) on share a bin. */
const MAX_GAP_BIN = 23;
/** Sessions assumed in each bin before any is known: one that ended, and one that went on. */
const PRIOR_ENDED = 1;
const PRIOR_DECIDED = 2;
/** Gaps assumed before any is known; half of these gaps are longer than {@link PRIOR_GAP_MS}. */
const PRIOR_GAPS = 10;
const PRIOR_GAP_MS = 1_000;
/**
 * A session that is away is not worth its memory once it is expected to stay away for as long as a server needs to
 * compute all of its KV memory again: about 600,000 tokens at 10 a millisecond.
 */
const STALE_REST_MS = 60_000;
const MIN_STALE_MS = 10_000;

/** Bin of a context, tokens. */
export function toContextBin(tokens: number): number {
  return Math.max(MIN_CONTEXT_BIN, Math.min(MAX_CONTEXT_BIN, Math.floor(Math.log2(Math.max(1, tokens)))));
}

/** Computes the outlook of a pool from the counts of its sessions. */
export function buildOutlook(counts: SessionCounts): SessionOutlook {
  const away = estimateAway(counts.gaps);
  const stale = away.findIndex((_, bin) => 2 ** bin >= MIN_STALE_MS && estimateRest(away, bin) >= STALE_REST_MS);
  return { growth: estimateGrowth(counts), away, staleMs: 2 ** (stale < 0 ? MAX_GAP_BIN : stale) };
}

/**
 * Estimates the growth from the middle of each bin. The share of sessions that end in a bin is taken over the sessions
 * that ended there or went on (Kaplan-Meier by bins), so sessions that still run do not shorten the estimate. Beyond
 * the longest context so far, one more doubling counts.
 */
function estimateGrowth({ reached, ended }: SessionCounts): number[] {
  const longest = Math.max(MIN_CONTEXT_BIN, ...Object.keys(reached).map(Number));
  const growth: number[] = [];
  let beyond = 0;
  for (let bin = MAX_CONTEXT_BIN; bin >= MIN_CONTEXT_BIN; bin--) {
    const endedHere = ended[bin] ?? 0;
    const endShare = (endedHere + PRIOR_ENDED) / (endedHere + (reached[bin + 1] ?? 0) + PRIOR_DECIDED);
    const width = 2 ** bin;
    growth[bin - MIN_CONTEXT_BIN] = Math.round((width / 2) * (1 - endShare / 2) + (1 - endShare) * beyond);
    beyond = bin > longest + 1 ? 0 : endShare * (width / 2) + (1 - endShare) * (width + beyond);
  }
  return growth;
}

function estimateAway(gaps: SessionCounts['gaps']): number[] {
  const all = Object.values(gaps).reduce((sum, count) => sum + count, 0) + PRIOR_GAPS;
  return Array.from({ length: MAX_GAP_BIN + 1 }, (_, bin) => {
    let longer = PRIOR_GAPS / (1 + 2 ** bin / PRIOR_GAP_MS);
    for (const [gap, count] of Object.entries(gaps)) if (Number(gap) >= bin) longer += count;
    return longer / all;
  });
}

/** Time for which a session that is away for 2^bin milliseconds is expected to stay away still, milliseconds. */
function estimateRest(away: readonly number[], bin: number): number {
  let sum = 0;
  for (let next = bin; next < MAX_GAP_BIN; next++) sum += ((away[next]! + away[next + 1]!) / 2) * 2 ** next;
  return sum / away[bin]!;
}

/** Tokens by which a context is expected to grow until its session ends. */
export function expectGrowth({ growth }: SessionOutlook, contextTokens: number): number {
  return growth[toContextBin(contextTokens) - MIN_CONTEXT_BIN]!;
}

/** Share of the sessions that are away for longer than a time, milliseconds. */
function shareAway({ away }: SessionOutlook, ms: number): number {
  if (ms < 1) return 1 - (1 - away[0]!) * Math.max(0, ms);
  const bin = Math.min(away.length - 1, Math.floor(Math.log2(ms)));
  const next = away[bin + 1];
  if (next === undefined) return away[bin]!;
  return away[bin]! + (next - away[bin]!) * (ms / 2 ** bin - 1);
}

/** Probability that a session that is away for `awayMs` returns within the next `withinMs`. */
export function chanceOfReturn(outlook: SessionOutlook, awayMs: number, withinMs: number): number {
  return 1 - shareAway(outlook, awayMs + withinMs) / shareAway(outlook, awayMs);
}
