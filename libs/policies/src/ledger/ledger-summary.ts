import {
  type Acceptance,
  type LedgerSummary,
  type LengthRange,
  type LengthSummary,
  LEDGER_BOUNDS,
  type LedgerAlarm,
  type LedgerBounds,
} from '@broomwagon/contracts';
import { binFloor, binTokens, lengthBin, lengthRange } from './length-bins';
import { kaplanMeier, computeMean, computeQuantile, type Survival } from './kaplan-meier';

/**
 * Summarises a ledger.
 * @param open counters of samples that have not ended yet (`countOpen`); the final lengths will be longer
 */
export function summariseLedger(counters: LedgerCounters, open: LedgerCounters = {}): LedgerSummary {
  const all = addCounters({}, counters, open);
  const ended = numbered(all, 'ended.length.');
  const cut = numbered(all, 'cut.length.');
  const population = computePopulation(ended, cut);
  const kept = computeKeptSurvival(all);
  const trainedLengths = buildDistribution(numbered(all, 'trained.length.'));
  const trained = lengths(trainedLengths, ratio(all['trained.atCap'], all['trained.samples']));
  const admitted = lengths(population, capShare(population, ended, numbered(all, 'ended.atCap.')));
  const waste = named(all, 'waste.');
  const wasted = Object.values(waste).reduce((sum, tokens) => sum + tokens, 0);
  return {
    trained,
    admitted,
    // Both means are computed from bins, so that the errors of the bins cancel out.
    lengthBias: kept.count === 0 ? 1 : ratio(computeMean(kept), admitted.meanTokens, 1),
    offPolicyShare: ratio(all['trained.offPolicyTokens'], all['trained.tokens']),
    versionSpan: meanAndMax(numbered(all, 'trained.span.')),
    waste: { tokens: wasted, share: ratio(wasted, wasted + (all['trained.tokens'] ?? 0)), byReason: waste },
    trainedByKind: trainedByKind(all),
    batchVariation: batchVariation(all),
    cutsPerGroup: meanAndMax(numbered(all, 'groups.cuts.')),
    lengths: lengthRanges(ended, cut),
    acceptance: acceptance(population, kept),
    excluded: { groups: all['groups.excluded'] ?? 0, samples: all['excluded.samples'] ?? 0 },
    reconciled: { groups: all['reconciled.groups'] ?? 0, samples: all['reconciled.samples'] ?? 0 },
  };
}

/** Half widths of the compared range of lengths, in doublings. The first width with enough trained samples is used. */
const HALF_WIDTHS = [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2];
const ENOUGH_SAMPLES = 50;

/**
 * Returns a function for how much a tail policy prefers samples of a length: the share of samples near that length (up
 * to a factor of sqrt(2)) among trained samples / their share among started samples. The function returns undefined for
 * a length that was never trained.
 * @param counters ledger of the steps to learn from
 * @param open counters of open samples, as for {@link summariseLedger}
 */
export function acceptanceByLength(
  counters: LedgerCounters,
  open: LedgerCounters = {},
): (tokens: number) => number | undefined {
  const all = addCounters({}, counters, open);
  const population = computePopulation(numbered(all, 'ended.length.'), numbered(all, 'cut.length.'));
  const kept = computeKeptSurvival(all);
  const keptNear = sharesNear(kept);
  const populationNear = sharesNear(population);
  return (tokens) => {
    const middle = Math.max(1, binTokens(lengthBin(tokens)));
    const isEnough = (width: number): boolean => Math.round(keptNear(middle, width) * kept.count) >= ENOUGH_SAMPLES;
    const width = HALF_WIDTHS.find(isEnough) ?? HALF_WIDTHS.at(-1)!;
    return ratio(keptNear(middle, width), populationNear(middle, width)) || undefined;
  };
}

/**
 * Returns a function for the share of values at most `halfWidth` doublings from a middle; fast, because it is called
 * for every sample.
 */
function sharesNear({ steps }: Survival): (middle: number, halfWidth: number) => number {
  const sums = [0];
  for (const { share } of steps) sums.push(sums.at(-1)! + share);
  const sumWhere = (isBelow: (value: number) => boolean): number => {
    let [low, high] = [0, steps.length];
    while (low < high) {
      const position = (low + high) >> 1;
      if (isBelow(steps[position]!.value)) low = position + 1;
      else high = position;
    }
    return sums[low]!;
  };
  return (middle, halfWidth) => {
    const [least, most] = [middle * 2 ** -halfWidth, middle * 2 ** halfWidth];
    return sumWhere((value) => value <= most) - sumWhere((value) => value < least);
  };
}

function computePopulation(ended: Map<number, number>, cut: Map<number, number>): Survival {
  const bins = [...new Set([...ended.keys(), ...cut.keys()])];
  return kaplanMeier(
    bins.map((bin) => ({ value: binTokens(bin), ended: ended.get(bin) ?? 0, censored: cut.get(bin) ?? 0 })),
  );
}

/** Returns the lengths that the tail policy has accepted, with samples that were excluded for equal rewards. */
function computeKeptSurvival(all: LedgerCounters): Survival {
  const lengths = numbered(all, 'trained.length.');
  for (const [bin, count] of numbered(all, 'excluded.length.')) lengths.set(bin, (lengths.get(bin) ?? 0) + count);
  return buildDistribution(lengths);
}

function buildDistribution(lengths: Map<number, number>): Survival {
  return kaplanMeier([...lengths].map(([bin, count]) => ({ value: binTokens(bin), ended: count, censored: 0 })));
}

function lengths(survival: Survival, share: number): LengthSummary {
  return {
    samples: survival.count,
    meanTokens: computeMean(survival),
    p50Tokens: quantileTokens(survival, 0.5),
    p99Tokens: quantileTokens(survival, 0.99),
    capShare: share,
  };
}

/** Returns a value that is at most 3.2 % below the quantile, and never above the longest sample. */
function quantileTokens(survival: Survival, q: number): number {
  return binFloor(lengthBin(computeQuantile(survival, q)));
}

/**
 * Returns the share of samples that ended at the token budget. For each length, the share among ended samples is taken
 * for all samples.
 */
function capShare({ steps }: Survival, ended: Map<number, number>, atCap: Map<number, number>): number {
  const shares = new Map([...atCap].map(([bin, count]) => [binTokens(bin), ratio(count, ended.get(bin))]));
  return steps.reduce((sum, { value, share }) => sum + share * (shares.get(value) ?? 0), 0);
}

function lengthRanges(ended: Map<number, number>, cut: Map<number, number>): LengthRange[] {
  const ranges = new Map<number, LengthRange>();
  const count = (counts: Map<number, number>, field: 'finished' | 'unfinished') => {
    for (const [bin, samples] of counts) {
      const edges = lengthRange(binTokens(bin));
      const found = ranges.get(edges.fromTokens) ?? { ...edges, finished: 0, unfinished: 0 };
      found[field] += samples;
      ranges.set(edges.fromTokens, found);
    }
  };
  count(ended, 'finished');
  count(cut, 'unfinished');
  return [...ranges.values()].sort((one, other) => one.fromTokens - other.fromTokens);
}

/** Returns the acceptance for each doubling of the length; finer ranges would hold too few samples. */
function acceptance(population: Survival, chosen: Survival): Acceptance[] {
  const byRange = ({ steps }: Survival): Map<number, number> => {
    const shares = new Map<number, number>();
    for (const { value, share } of steps) {
      const range = Math.floor(Math.log2(Math.max(1, value)));
      shares.set(range, (shares.get(range) ?? 0) + share);
    }
    return shares;
  };
  const kept = byRange(chosen);
  return [...byRange(population)]
    .sort(([one], [other]) => one - other)
    .map(([range, share]) => ({
      fromTokens: range === 0 ? 0 : 2 ** range,
      toTokens: 2 ** (range + 1),
      ratio: ratio(kept.get(range), share),
    }));
}

function trainedByKind(all: LedgerCounters): LedgerSummary['trainedByKind'] {
  const count = (name: string): number => all[`trained.${name}`] ?? 0;
  const part = (samples: number, tokens: number, atCap: number) => ({
    samples,
    meanTokens: ratio(tokens, samples),
    capShare: ratio(atCap, samples),
  });
  const long = [count('longSamples'), count('longTokens'), count('longAtCap')] as const;
  return {
    long: part(...long),
    short: part(count('samples') - long[0], count('tokens') - long[1], count('atCap') - long[2]),
  };
}

function batchVariation(all: LedgerCounters): number {
  const count = all['batch.count'] ?? 0;
  const mean = ratio(all['batch.sum'], count);
  return ratio(Math.sqrt(Math.max(0, ratio(all['batch.squares'], count) - mean * mean)), mean);
}

function meanAndMax(counts: Map<number, number>): { mean: number; max: number } {
  let [samples, sum, max] = [0, 0, 0];
  for (const [value, count] of counts) {
    samples += count;
    sum += value * count;
    max = Math.max(max, value);
  }
  return { mean: ratio(sum, samples), max };
}

function numbered(counters: LedgerCounters, prefix: string): Map<number, number> {
  return new Map(Object.entries(named(counters, prefix)).map(([name, count]) => [Number(name), count]));
}

function named(counters: LedgerCounters, prefix: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const name in counters) {
    if (name.startsWith(prefix) && counters[name] !== 0) found[name.slice(prefix.length)] = counters[name]!;
  }
  return found;
}

function ratio(part = 0, whole = 0, ofNothing = 0): number {
  return whole === 0 ? ofNothing : part / whole;
}

/**
 * The ledger of a round or a job: whole numbers by name, which only grow. A sample is added with a few `HINCRBY`, and
 * ledgers are merged by addition, in any order.
 */
export type LedgerCounters = Record<string, number>;

/** Adds the parts to `into`, and returns `into`. */
export function addCounters(into: LedgerCounters, ...parts: readonly LedgerCounters[]): LedgerCounters {
  for (const part of parts) {
    for (const name in part) into[name] = (Object.hasOwn(into, name) ? into[name]! : 0) + part[name]!;
  }
  return into;
}

/** Bounds without a bound of the trainer: a length bias of more than 5 % raises an alarm. */
const DEFAULT_LEDGER_BOUNDS: LedgerBounds = { lengthBias: 0.05 };
const NEAR = 0.8;

/** Returns an alarm for each value that is near or over its bound. */
export function ledgerAlarms(summary: LedgerSummary, bounds: LedgerBounds = {}): LedgerAlarm[] {
  const values: Required<LedgerBounds> = {
    lengthBias: Math.abs(summary.lengthBias - 1),
    truncatedShare: summary.trained.capShare,
    offPolicyShare: summary.offPolicyShare,
    versionSpan: summary.versionSpan.max,
    wasteShare: summary.waste.share,
    batchVariation: summary.batchVariation,
    cutsPerGroup: summary.cutsPerGroup.max,
  };
  const limits = { ...DEFAULT_LEDGER_BOUNDS, ...bounds };
  return LEDGER_BOUNDS.flatMap((bound) => {
    const limit = limits[bound];
    const value = values[bound];
    if (limit === undefined || value <= NEAR * limit) return [];
    return [{ bound, value, limit, state: value > limit ? 'over' : 'near' }];
  });
}
