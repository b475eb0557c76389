import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  buildOutlook,
  chanceOfReturn,
  expectGrowth,
  MAX_CONTEXT_BIN,
  MIN_CONTEXT_BIN,
  toContextBin,
  type SessionCounts,
} from './session-outlook';

const NOTHING: SessionCounts = { reached: {}, ended: {}, gaps: {} };
const bins = (from: number, to: number) =>
  fc.dictionary(fc.integer({ min: from, max: to }).map(String), fc.nat(10_000)) as fc.Arbitrary<Record<number, number>>;
const counts: fc.Arbitrary<SessionCounts> = fc.record({
  reached: bins(MIN_CONTEXT_BIN, MAX_CONTEXT_BIN),
  ended: bins(MIN_CONTEXT_BIN, MAX_CONTEXT_BIN),
  gaps: bins(0, 24),
});

/** Counts of sessions that grow by doubling until a turn in which they end. */
function countSessions(finals: readonly number[], first: number): SessionCounts {
  const reached: Record<number, number> = {};
  const ended: Record<number, number> = {};
  for (const final of finals) {
    for (let bin = toContextBin(first); bin <= toContextBin(final); bin++) reached[bin] = (reached[bin] ?? 0) + 1;
    ended[toContextBin(final)] = (ended[toContextBin(final)] ?? 0) + 1;
  }
  return { reached, ended, gaps: {} };
}

it('estimates finite outlooks whatever was counted: growth is positive, and fewer sessions are away for longer', () => {
  fc.assert(
    fc.property(
      counts,
      fc.nat(100_000_000),
      fc.nat(100_000_000),
      fc.nat(100_000_000),
      (given, tokens, away, within) => {
        const outlook = buildOutlook(given);
        expect(expectGrowth(outlook, tokens)).toBeGreaterThan(0);
        expect(expectGrowth(outlook, tokens)).toBeLessThan(2 ** (MAX_CONTEXT_BIN + 2));
        for (const [bin, share] of outlook.away.entries())
          expect(share).toBeLessThanOrEqual(outlook.away[bin - 1] ?? 1);
        const chance = chanceOfReturn(outlook, away, within);
        expect(chance).toBeGreaterThanOrEqual(0);
        expect(chance).toBeLessThanOrEqual(1);
        expect(chanceOfReturn(outlook, away, within + 1_000)).toBeGreaterThanOrEqual(chance - 1e-12);
        expect(outlook.staleMs).toBeGreaterThanOrEqual(10_000);
      },
    ),
  );
});

it('expects the growth that ended sessions had, and one more doubling of a context longer than all before', () => {
  const finals = Array.from({ length: 4_000 }, (_, n) => 8_192 + ((n * 7_919) % 122_880));
  const outlook = buildOutlook(countSessions(finals, 8_192));
  for (const context of [12_000, 24_000, 48_000]) {
    const longer = finals.filter((final) => final > context);
    const mean = longer.reduce((sum, final) => sum + final - context, 0) / longer.length;
    expect(expectGrowth(outlook, context) / mean).toBeGreaterThan(0.7);
    expect(expectGrowth(outlook, context) / mean).toBeLessThan(1.3);
  }
  const fresh = buildOutlook({ ...NOTHING, reached: { [toContextBin(8_192)]: 100 } });
  expect(expectGrowth(fresh, 8_192)).toBe(1.125 * 8_192);
});

it('ignores sessions that still run in the growth', () => {
  const ended = countSessions([20_000, 40_000, 80_000, 120_000], 10_000);
  const first = toContextBin(10_000);
  const running = { ...ended.reached, [first]: 1_000 };
  const growthFrom = (counts: SessionCounts) => buildOutlook(counts).growth.slice(first - MIN_CONTEXT_BIN);
  expect(growthFrom({ ...ended, reached: running })).toEqual(growthFrom(ended));
});

it('learns gaps: a session that was away for longer than nearly all is unlikely to return soon, then stale', () => {
  const outlook = buildOutlook({ ...NOTHING, gaps: { 9: 8_650, 12: 860, 14: 490 } });
  expect(chanceOfReturn(outlook, 0, 2_000)).toBeGreaterThan(0.85);
  expect(chanceOfReturn(outlook, 20_000, 2_000)).toBeLessThan(0.4);
  expect(outlook.staleMs).toBe(32_768);
});

it('keeps sessions until they are expected to stay away for a minute, whatever part of them is away so long', () => {
  const learn = (gaps: Record<number, number>) => buildOutlook({ ...NOTHING, gaps }).staleMs;
  // Gaps of 9 to 17 minutes: whoever has not returned within 10 s stays away.
  expect(learn({ 9: 8_650, 19: 500 })).toBe(16_384);
  expect(learn({ 9: 8_650, 19: 8_650 })).toBe(16_384);
  // Gaps of 16 to 32 s: all return soon, and only then a session is not expected.
  expect(learn({ 14: 10_000 })).toBe(32_768);
});
