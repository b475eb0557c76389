import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { Acceptance } from '@broomwagon/contracts';
import { countBatch, countGroup, countOpen, countTrained, countWasted, RandomStream } from '@broomwagon/models';
import { kaplanMeier, computeMean, computeQuantile, type Observed } from './kaplan-meier';
import { ledgerAlarms, addCounters, acceptanceByLength, summariseLedger } from './ledger-summary';
import { binTokens, lengthBin } from './length-bins';

function trained(tokens: number, weightVersion = 0, isAtCap = false) {
  return countTrained({ segments: [{ weightVersion, tokenCount: tokens }], weightVersion, isAtCap });
}

/** The acceptance ratio of the range that a sample of this length falls into. */
function findAcceptance(ranges: readonly Acceptance[], tokens: number): number {
  return ranges.find(({ fromTokens, toTokens }) => tokens >= fromTokens && tokens < toTokens)?.ratio ?? 1;
}

describe('Kaplan and Meier', () => {
  // Weeks of remission under 6-mercaptopurine (Freireich and others 1963), the example of every textbook.
  const remission: Observed[] = [
    [6, 3, 1],
    [7, 1, 0],
    [9, 0, 1],
    [10, 1, 1],
    [11, 0, 1],
    [13, 1, 0],
    [16, 1, 0],
    [17, 0, 1],
    [19, 0, 1],
    [20, 0, 1],
    [22, 1, 0],
    [23, 1, 0],
    [25, 0, 1],
    [32, 0, 2],
    [34, 0, 1],
    [35, 0, 1],
  ].map(([value, ended, censored]) => ({ value: value!, ended: ended!, censored: censored! }));

  it('gives the survival, mean and median of the worked example', () => {
    const result = kaplanMeier(remission);
    const survival = result.steps.map((step) => [step.value, Number(step.survival.toFixed(4))]);
    expect(survival).toEqual([
      [6, 0.8571],
      [7, 0.8067],
      [10, 0.7529],
      [13, 0.6902],
      [16, 0.6275],
      [22, 0.5378],
      [23, 0.4482],
      [35, 0],
    ]);
    expect(computeMean(result)).toBeCloseTo(23.287, 2);
    expect(computeQuantile(result, 0.5)).toBe(23);
  });

  it('is the plain distribution when no value is cut, and never falls below it when a value is', () => {
    const values = fc.uniqueArray(
      fc.record({ value: fc.integer({ min: 1, max: 500 }), count: fc.integer({ min: 1, max: 9 }) }),
      {
        minLength: 1,
        selector: ({ value }) => value,
      },
    );
    fc.assert(
      fc.property(values, fc.infiniteStream(fc.nat(9)), (all, cut) => {
        const whole = kaplanMeier(all.map(({ value, count }) => ({ value, ended: count, censored: 0 })));
        const count = all.reduce((sum, one) => sum + one.count, 0);
        expect(computeMean(whole)).toBeCloseTo(all.reduce((sum, one) => sum + one.value * one.count, 0) / count, 6);
        const part = kaplanMeier(
          all.map((one) => {
            const censored = Math.min(one.count, cut.next().value as number);
            return { value: one.value, ended: one.count - censored, censored };
          }),
        );
        expect(part.steps.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
        expect(computeMean(part)).toBeGreaterThanOrEqual(computeMean(whole) - 1e-6);
        const values = part.steps.map(({ value }) => value);
        expect(values).toEqual(values.toSorted((a, b) => a - b));
      }),
    );
  });
});

describe('length bins', () => {
  it('keep the order, are exact for short lengths, and never more than 1.6 % off', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2_000_000 }), (tokens) => {
        expect(lengthBin(tokens + 1) - lengthBin(tokens)).toBeOneOf([0, 1]);
        expect(Math.abs(binTokens(lengthBin(tokens)) - tokens)).toBeLessThanOrEqual(tokens < 64 ? 0 : tokens * 0.016);
      }),
      { numRuns: 500 * inject('runsFactor') },
    );
    for (let power = 6; power < 40; power++) expect(lengthBin(2 ** power)).toBe(lengthBin(2 ** power - 1) + 1);
  });
});

describe('ledger', () => {
  it('summarizes trained, wasted, old and cut samples', () => {
    const ledger = addCounters(
      {},
      countTrained({
        segments: [
          { weightVersion: 3, tokenCount: 30 },
          { weightVersion: 5, tokenCount: 10 },
        ],
        weightVersion: 5,
        isAtCap: false,
      }),
      trained(20, 5, true),
      countWasted({ tokens: 15, reason: 'cut', end: 'cut' }),
      countWasted({ tokens: 5, reason: 'unaccepted', end: 'stopped' }),
      countGroup(2),
      countGroup(0),
      countBatch(40),
      countBatch(20),
    );
    const summary = summariseLedger(ledger);
    expect(summary).toMatchObject({
      trained: { samples: 2, meanTokens: 30, p50Tokens: 20, p99Tokens: 40, capShare: 0.5 },
      // 5 ended, 15 cut, 20 ended, 40 ended: S = 3/4, 3/8, 0.
      admitted: { samples: 4, meanTokens: 5 / 4 + (20 * 3) / 8 + (40 * 3) / 8, capShare: 3 / 8 },
      offPolicyShare: 0.5,
      versionSpan: { mean: 1, max: 2 },
      waste: { tokens: 20, share: 0.25, byReason: { cut: 15, unaccepted: 5 } },
      cutsPerGroup: { mean: 1, max: 2 },
      lengths: [
        { fromTokens: 5, toTokens: 6, finished: 1, unfinished: 0 },
        { fromTokens: 13, toTokens: 16, finished: 0, unfinished: 1 },
        { fromTokens: 19, toTokens: 23, finished: 1, unfinished: 0 },
        { fromTokens: 38, toTokens: 45, finished: 1, unfinished: 0 },
      ],
    });
    expect(summary.batchVariation).toBeCloseTo(1 / 3, 9);
  });

  it('counts excluded samples as chosen by the tail policy, and not as trained', () => {
    const length = (kind: string) => ({ [`${kind}.length.${lengthBin(30)}`]: 1 });
    const excluded = { ...length('ended'), ...length('excluded'), 'excluded.samples': 1, 'groups.excluded': 1 };
    const summary = summariseLedger(addCounters({}, trained(10), excluded));
    expect(summary).toMatchObject({
      trained: { samples: 1, meanTokens: 10 },
      admitted: { samples: 2, meanTokens: 20 },
      excluded: { groups: 1, samples: 1 },
      lengthBias: 1,
    });
    expect(summary.acceptance.map(({ ratio }) => ratio)).toEqual([1, 1]);
  });

  it('is all zeros, and unbiased, before any sample', () => {
    expect(summariseLedger({})).toMatchObject({ lengthBias: 1, offPolicyShare: 0, batchVariation: 0, acceptance: [] });
    expect(ledgerAlarms(summariseLedger({}))).toEqual([]);
  });

  it('is unbiased while samples have started and none is trained yet', () => {
    const summary = summariseLedger({ [`ended.length.${lengthBin(300)}`]: 1 });
    expect(summary).toMatchObject({ admitted: { samples: 1 }, trained: { samples: 0 }, lengthBias: 1 });
    expect(ledgerAlarms(summary)).toEqual([]);
  });

  it('is the same however its samples are split over ledgers and in whatever order they are merged', () => {
    const delta = fc.oneof(
      fc.integer({ min: 1, max: 40_000 }).map((tokens) => trained(tokens)),
      fc.integer({ min: 1, max: 40_000 }).map((tokens) => countWasted({ tokens, reason: 'cut', end: 'cut' })),
      fc.nat(5).map(countGroup),
      fc.integer({ min: 1, max: 9_000 }).map(countBatch),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(delta, fc.nat(3)), { maxLength: 60 }), (deltas) => {
        const whole = addCounters({}, ...deltas.map(([one]) => one));
        const parts = [{}, {}, {}, {}];
        for (const [one, part] of deltas.toReversed()) addCounters(parts[part]!, one);
        const merged = addCounters({}, ...parts.toReversed());
        expect(summariseLedger(merged)).toEqual(summariseLedger(whole));
      }),
    );
  });

  it('finds the true mean, and how to weigh a sample, when long ones are cut at random and lost', () => {
    const random = new RandomStream('ledger', 1);
    const ledger = {};
    const kept: number[] = [];
    let sum = 0;
    const samples = 20_000;
    for (let sample = 0; sample < samples; sample++) {
      const tokens = Math.round(Math.exp(6 + 0.8 * random.normal()));
      const cutAt = Math.round(2_000 * random.uniform());
      sum += tokens;
      if (tokens <= cutAt) kept.push(tokens);
      addCounters(
        ledger,
        tokens <= cutAt ? trained(tokens) : countWasted({ tokens: cutAt, reason: 'cut', end: 'cut' }),
      );
    }
    const summary = summariseLedger(ledger);
    expect(Math.abs(summary.admitted.meanTokens / (sum / samples) - 1)).toBeLessThan(0.05);
    expect(summary.lengthBias).toBeLessThan(0.9);
    const weights = kept.map((tokens) => 1 / findAcceptance(summary.acceptance, tokens));
    const weight = weights.reduce((total, one) => total + one, 0);
    const reweighted = kept.reduce((total, tokens, index) => total + tokens * weights[index]!, 0) / weight;
    expect(Math.abs(reweighted / summary.admitted.meanTokens - 1)).toBeLessThan(0.08);
    const alarm = { bound: 'lengthBias', value: 1 - summary.lengthBias, limit: 0.05, state: 'over' };
    expect(ledgerAlarms(summary)).toEqual([alarm]);
  });

  it('knows how a policy prefers each length, and so weighs samples to the true mean', () => {
    const random = new RandomStream('acceptance', 1);
    const ledger = {};
    const kept: number[] = [];
    let sum = 0;
    const samples = 20_000;
    // Nine of ten samples are cut, at any length up to 2,000 tokens.
    const computeChance = (tokens: number): number => 0.1 + 0.9 * Math.max(0, 1 - tokens / 2_000);
    for (let sample = 0; sample < samples; sample++) {
      const tokens = Math.round(Math.exp(6 + 0.8 * random.normal()));
      const cutAt = random.uniform() < 0.1 ? Infinity : Math.round(2_000 * random.uniform());
      sum += tokens;
      if (tokens <= cutAt) kept.push(tokens);
      addCounters(
        ledger,
        tokens <= cutAt ? trained(tokens) : countWasted({ tokens: cutAt, reason: 'cut', end: 'cut' }),
      );
    }
    const acceptance = acceptanceByLength(ledger);
    for (const tokens of [100, 200, 400, 800, 1_600]) {
      const relative = acceptance(tokens)! / acceptance(400)! / (computeChance(tokens) / computeChance(400));
      expect(Math.abs(relative - 1), `${tokens} tokens`).toBeLessThan(0.15);
    }
    const weights = kept.map((tokens) => 1 / acceptance(tokens)!);
    const weight = weights.reduce((total, one) => total + one, 0);
    const mean = kept.reduce((total, tokens, index) => total + tokens * weights[index]!, 0) / weight;
    const plain = kept.reduce((total, tokens) => total + tokens, 0) / kept.length;
    expect(plain / (sum / samples)).toBeLessThan(0.85);
    expect(Math.abs(mean / (sum / samples) - 1)).toBeLessThan(0.03);
    expect(acceptance(1_000_000)).toBeUndefined();
  });

  it('weighs each sample of a long round without a walk through all bins', () => {
    const bins = 323;
    const ledger = addCounters(
      {},
      ...Array.from({ length: bins }, (_, bin) => [1, 2, 3].map(() => trained(Math.ceil(binTokens(bin))))).flat(),
    );
    const acceptance = acceptanceByLength(ledger);
    const before = process.cpuUsage();
    let worst = 0;
    for (let sample = 0; sample < 100_000; sample++)
      worst = Math.max(worst, Math.abs(acceptance(binTokens(1 + (sample % (bins - 1))))! - 1));
    expect(worst).toBeLessThan(1e-9);
    // A walk for each takes 3.5 seconds.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1);
  });

  it('counts open samples as longer than they are, for one reading only', () => {
    const ledger = addCounters({}, trained(10), trained(10));
    expect(summariseLedger(ledger, countOpen(20)).admitted.meanTokens).toBeCloseTo((10 + 10 + 20) / 3, 9);
    expect(summariseLedger(ledger).admitted.meanTokens).toBe(10);
  });

  it('warns when a bound is near, and when it is broken', () => {
    const ledger = addCounters({}, countGroup(4), trained(10));
    const summary = summariseLedger(ledger);
    expect(ledgerAlarms(summary, { cutsPerGroup: 5 })).toEqual([]);
    expect(ledgerAlarms(summary, { cutsPerGroup: 4 })).toEqual([
      { bound: 'cutsPerGroup', value: 4, limit: 4, state: 'near' },
    ]);
    expect(ledgerAlarms(summary, { cutsPerGroup: 3 })[0]!.state).toBe('over');
  });
});

describe('quantiles and kinds of rounds', () => {
  it('never gives a quantile above the longest sample, and stays within a bin of the exact one', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(lengths, (tokens) => {
        const { trained: summary } = summariseLedger(addCounters({}, ...tokens.map((length) => trained(length))));
        const sorted = tokens.toSorted((a, b) => a - b);
        for (const [found, q] of [
          [summary.p50Tokens, 0.5],
          [summary.p99Tokens, 0.99],
        ] as const) {
          const exact = sorted[Math.ceil(q * sorted.length) - 1]!;
          expect(found).toBeLessThanOrEqual(exact);
          expect(found).toBeGreaterThanOrEqual(exact * (1 - 1 / 32));
        }
      }),
    );
    const capped = summariseLedger(addCounters({}, ...Array.from({ length: 4 }, () => trained(256, 0, true))));
    expect(capped.trained).toMatchObject({ p50Tokens: 256, p99Tokens: 256 });
  });

  it('compares length and truncation of long rounds with all others', () => {
    const long = { 'trained.longSamples': 1, 'trained.longTokens': 300, 'trained.longAtCap': 1 };
    const counters = addCounters({}, trained(300, 0, true), long, trained(100), trained(200, 0, true));
    expect(summariseLedger(counters).trainedByKind).toEqual({
      long: { samples: 1, meanTokens: 300, capShare: 1 },
      short: { samples: 2, meanTokens: 150, capShare: 0.5 },
    });
  });
});
