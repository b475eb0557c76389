import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { RandomStream } from '../lengths';
import { EngineModel } from './engine-model';
import { ENGINE_PRESETS, type EngineParameters, stepSeconds } from './engine-parameters';

const roomy: EngineParameters = { ...ENGINE_PRESETS['14b-16k'], kvCapacityTokens: 1e9 };

function sequence(id: string, remainingTokens: number, contextTokens = 0) {
  return { id, contextTokens, prefillTokens: 0, remainingTokens };
}

/** Runs all sequences to their ends, event by event; returns the makespan in simulated seconds. */
function drain(model: EngineModel): number {
  while (model.runningCount > 0) model.advance(model.secondsToNextEvent());
  return model.totals.simulatedSeconds;
}

/** Makespan of an engine that decodes step by step, seconds: the oracle. */
function makespanBySteps(parameters: EngineParameters, lengths: number[]): number {
  let seconds = 0;
  let kv = 0;
  const left = lengths.map((length) => ({ length, made: 0 }));
  for (;;) {
    const running = left.filter((one) => one.made < one.length);
    if (running.length === 0) return seconds;
    kv = running.reduce((sum, one) => sum + one.made, 0);
    seconds += stepSeconds(parameters, running.length, kv);
    for (const one of running) one.made += 1;
  }
}

/** Number of preemptions by the scheduler of vLLM V1 without a prefix cache, simulated step by step. */
function preemptionsBySteps(lengths: number[], capacity: number, chunk: number): number {
  const waiting = lengths.map((length) => ({ length, made: 0, computed: 0 }));
  const running: typeof waiting = [];
  const inUse = (): number => running.reduce((sum, { computed }) => sum + computed + 7.5, 0);
  let [preemptions, budget] = [0, 0];
  const missing = ({ made, computed }: (typeof waiting)[number]): number => Math.min(budget, made + 1 - computed);
  const compute = (one: (typeof waiting)[number]): void => {
    const tokens = missing(one);
    one.computed += tokens;
    budget -= tokens;
  };
  while (waiting.length + running.length > 0) {
    let hasPreempted = false;
    budget = chunk;
    for (const one of running.slice()) {
      while (running.includes(one) && running.length > 1 && inUse() + missing(one) > capacity) {
        const victim = running.pop()!;
        victim.computed = 0;
        waiting.unshift(victim);
        hasPreempted = true;
        preemptions += 1;
      }
      if (running.includes(one)) compute(one);
    }
    for (;;) {
      const head = waiting[0];
      if (head === undefined || hasPreempted || budget === 0) break;
      if (running.length > 0 && inUse() + missing(head) + 7.5 > capacity) break;
      compute(head);
      running.push(waiting.shift()!);
    }
    for (const one of running.slice()) {
      if (one.computed <= one.made) continue;
      one.made += 1;
      if (one.made === one.length) running.splice(running.indexOf(one), 1);
    }
  }
  return preemptions;
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

describe('engine model', () => {
  it('gives a lone request L * tau(1)', () => {
    const parameters = { ...roomy, stepPerKvTokenSeconds: 0 };
    const model = new EngineModel(parameters);
    model.add(sequence('a', 1_000));
    expect(drain(model)).toBeCloseTo(1_000 * stepSeconds(parameters, 1, 0), 6);
  });

  it('obeys the makespan identity T = sum L_j (tau(j) - tau(j - 1)) of a static batch', () => {
    const parameters = { ...roomy, stepPerKvTokenSeconds: 0 };
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 200 }), (lengths) => {
        const model = new EngineModel(parameters);
        lengths.forEach((length, index) => model.add(sequence(`${index}`, length)));
        const identity = lengths
          .toSorted((a, b) => b - a)
          .reduce((sum, length, index) => {
            const below = index === 0 ? 0 : stepSeconds(parameters, index, 0);
            return sum + length * (stepSeconds(parameters, index + 1, 0) - below);
          }, 0);
        expect(drain(model) / identity).toBeCloseTo(1, 6);
      }),
      { numRuns: 50 * inject('runsFactor') },
    );
  });

  it('stays within 1 % of an engine that decodes step by step, KV growth included', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 50, max: 3_000 }), { minLength: 1, maxLength: 40 }), (lengths) => {
        const model = new EngineModel(roomy);
        lengths.forEach((length, index) => model.add(sequence(`${index}`, length)));
        expect(drain(model) / makespanBySteps(roomy, lengths)).toBeCloseTo(1, 2);
      }),
      { numRuns: 30 * inject('runsFactor') },
    );
  });

  it('generates the same tokens however time is cut into pieces', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 30 });
    const pieces = fc.array(fc.double({ min: 0.001, max: 5, noNaN: true }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(lengths, pieces, (all, cuts) => {
        const whole = new EngineModel(roomy);
        const parts = new EngineModel(roomy);
        for (const model of [whole, parts]) all.forEach((length, index) => model.add(sequence(`${index}`, length)));
        for (const cut of cuts) parts.advance(cut);
        whole.advance(cuts.reduce((sum, cut) => sum + cut, 0));
        expect(parts.totals.tokensMade).toBeCloseTo(whole.totals.tokensMade, 3);
        expect(parts.totals.busySeconds).toBeCloseTo(whole.totals.busySeconds, 6);
      }),
    );
  });

  it('admits first in first out, at most `slots` at once', () => {
    const model = new EngineModel({ ...roomy, slots: 2 });
    for (const id of ['a', 'b', 'c', 'd']) model.add(sequence(id, 100));
    expect([model.runningCount, model.waitingCount]).toEqual([2, 2]);
    expect(model.remove('a')).toBe(0);
    expect([model.state('b'), model.state('c'), model.state('d')]).toEqual(['running', 'running', 'waiting']);
  });

  it('preempts the sequence admitted last when the KV cache is full, and loses none of its tokens', () => {
    const model = new EngineModel({ ...roomy, kvCapacityTokens: 1_015 });
    model.add(sequence('first', 700, 100));
    model.add(sequence('last', 700, 100));
    while (model.totals.preemptions === 0) model.advance(model.secondsToNextEvent());
    expect([model.state('first'), model.state('last')]).toEqual(['running', 'waiting']);
    expect(model.made('last')).toBe(400);
    const finished: string[] = [];
    while (model.runningCount > 0) finished.push(...model.advance(model.secondsToNextEvent()));
    expect(finished).toEqual(['first', 'last']);
    expect(model.totals.tokensMade).toBeCloseTo(1_400, 3);
  });

  it('admits while there are blocks, and leaves running sequences the blocks of their next token', () => {
    // Two sequences of 100 tokens fill 215 of 240 with half a block each; 16 more fit with their own block, 17 do not.
    const model = new EngineModel({ ...roomy, kvCapacityTokens: 240 });
    model.add(sequence('a', 10, 100));
    model.add(sequence('b', 10, 100));
    model.add(sequence('c', 10, 15));
    expect(model.state('c')).toBe('waiting');
    model.remove('c');
    model.add(sequence('d', 10, 14));
    expect(model.state('d')).toBe('running');
    expect(model.kvTokensInUse).toBeLessThanOrEqual(240);
  });

  it('admits a preempted sequence when another ends, and computes its whole context again', () => {
    const model = new EngineModel({ ...roomy, kvCapacityTokens: 1_000 });
    model.add({ ...sequence('first', 500, 100), prefillTokens: 100 });
    model.add({ ...sequence('last', 700, 100), prefillTokens: 100 });
    while (model.totals.preemptions === 0) model.advance(model.secondsToNextEvent());
    const made = model.made('last')!;
    // The freed blocks are not enough for its context at once.
    expect(model.state('last')).toBe('waiting');
    while (model.state('first') !== 'finished') model.advance(model.secondsToNextEvent());
    expect(model.state('last')).toBe('running');
    expect(model.totals.prefillTokens).toBe(200 + 100 + made);
  });

  it('refuses chunks that the sequences of a full batch would use up', () => {
    expect(() => new EngineModel({ ...roomy, slots: 64, chunkTokensWithoutCache: 64 })).toThrow(RangeError);
  });

  it('pays for the chunks of the head of the queue when the last running sequence is removed', () => {
    const limits = { slots: 16, kvCapacityTokens: 3_000, chunkTokensWithoutCache: 500, prefillTokensPerSecond: 100 };
    const model = new EngineModel({ ...roomy, ...limits });
    model.add(sequence('runs', 100, 2_000));
    model.add({ ...sequence('waits', 100, 2_500), prefillTokens: 2_500 });
    expect([model.state('waits'), model.totals.prefillTokens]).toEqual(['waiting', 499]);
    model.remove('runs');
    expect([model.state('waits'), model.totals.prefillTokens]).toEqual(['running', 2_500]);
    expect(model.debtSeconds).toBeCloseTo(25, 9);
  });

  it('preempts as often as a scheduler that works step by step, within 2 %, whatever the chunks', () => {
    const random = new RandomStream('preemptions');
    const fleets = Array.from({ length: 40 }, () =>
      Array.from({ length: 16 }, () => 50 + Math.floor(2_950 * random.uniform())),
    );
    for (const chunk of [256, 512, 4_000]) {
      const parameters = { ...roomy, slots: 16, kvCapacityTokens: 6_000, chunkTokensWithoutCache: chunk };
      const models = fleets.map((lengths) => {
        const model = new EngineModel(parameters);
        lengths.forEach((length, index) => model.add(sequence(`${index}`, length)));
        drain(model);
        return model.totals.preemptions;
      });
      const oracle = fleets.map((lengths) => preemptionsBySteps(lengths, 6_000, chunk));
      expect(Math.abs(sum(models) / sum(oracle) - 1), `chunks of ${chunk}`).toBeLessThan(0.02);
    }
  });

  it('stores and computes a shared prefix once', () => {
    const model = new EngineModel({ ...roomy, kvCapacityTokens: 4_000 });
    const prefixes = [{ key: 'prompt', tokens: 1_000 }];
    for (const id of ['a', 'b', 'c']) {
      model.add({ ...sequence(id, 100, 1_000), prefillTokens: 1_000, prefixes });
    }
    // 62 whole blocks of the prefix once, and its last 8 tokens for each sequence.
    expect(model.totals.prefillTokens).toBe(1_000 + 2 * 8);
    expect(model.kvTokensInUse).toBeCloseTo(992 + 3 * (8 + 7.5), 9);
    expect(model.contextTokens).toBe(3_000);
    for (const id of ['a', 'b', 'c']) model.remove(id);
    expect(model.kvTokensInUse).toBe(0);
    model.add({ ...sequence('later', 100, 1_000), prefillTokens: 1_000, prefixes });
    expect(model.totals.prefillTokens).toBe(1_016 + 8);
    model.remove('later');
    model.forgetIdle();
    model.add({ ...sequence('new weights', 100, 1_000), prefillTokens: 1_000, prefixes });
    expect(model.totals.prefillTokens).toBe(1_024 + 1_000);
  });

  it('gives the last blocks of an idle prefix to sequences that need them', () => {
    const model = new EngineModel({ ...roomy, kvCapacityTokens: 2_000 });
    const prefixes = [{ key: 'prompt', tokens: 1_600 }];
    model.add({ ...sequence('a', 10, 1_600), prefillTokens: 1_600, prefixes });
    model.remove('a');
    model.add(sequence('b', 500, 500));
    model.remove('b');
    model.add({ ...sequence('c', 10, 1_600), prefillTokens: 1_600, prefixes });
    // 1,492 tokens remained beside the other sequence: 93 whole blocks.
    expect(model.totals.prefillTokens).toBe(1_600 + 1_600 - 93 * 16);
  });

  it('pays for a prefill before it decodes', () => {
    const parameters = { ...roomy, stepPerKvTokenSeconds: 0, prefillTokensPerSecond: 20_000 };
    const model = new EngineModel(parameters);
    model.add({ id: 'a', contextTokens: 2_000, prefillTokens: 2_000, remainingTokens: 10 });
    expect(drain(model)).toBeCloseTo(0.1 + 10 * stepSeconds(parameters, 1, 0), 9);
  });

  it('rounds a batch up to its graph tier', () => {
    const tiers = { ...roomy, graphTiers: [4, 8] };
    expect(stepSeconds(tiers, 1, 0)).toBe(stepSeconds(tiers, 4, 0));
    expect(stepSeconds(tiers, 5, 0)).toBe(stepSeconds(tiers, 8, 0));
    expect(stepSeconds(tiers, 9, 0)).toBe(stepSeconds(roomy, 9, 0));
  });

  it('keeps its counts under any order of arrivals, removals and time', () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), tokens: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ kind: fc.constant('remove' as const), tokens: fc.nat(60) }),
      fc.record({ kind: fc.constant('advance' as const), tokens: fc.integer({ min: 1, max: 300 }) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 120 }), fc.constantFrom(undefined, 64), (actions, chunk) => {
        const model = new EngineModel({
          ...roomy,
          kvCapacityTokens: 900,
          slots: 5,
          ...(chunk && { chunkTokensWithoutCache: chunk }),
        });
        const added: string[] = [];
        for (const { kind, tokens } of actions) {
          if (kind === 'add') {
            added.push(`${added.length}`);
            model.add({ ...sequence(added.at(-1)!, tokens, tokens), prefillTokens: tokens });
          } else if (kind === 'remove') model.remove(`${tokens}`);
          else model.advance(tokens / 100);
          expect(model.runningCount).toBeLessThanOrEqual(5);
          expect(model.kvUse).toBeLessThanOrEqual(1 + 1e-6);
          expect(model.runningCount > 0 || model.waitingCount === 0).toBe(true);
        }
        drain(model);
        for (const id of added) model.remove(id);
        expect([model.runningCount, model.waitingCount, model.kvUse]).toEqual([0, 0, 0]);
      }),
    );
  });
});
