import { describe, expect, it } from 'vitest';
import { RandomStream } from '../lengths';
import { EngineModel } from './engine-model';
import { ENGINE_PRESETS, type EngineParameters, stepSeconds } from './engine-parameters';
import type { EngineSequence } from './engine-model.types';
import { StepScheduler } from './step-scheduler.fixture';

const parameters: EngineParameters = {
  ...ENGINE_PRESETS['14b-16k'],
  slots: 64,
  stepTokens: 512,
  prefillTokensPerSecond: 20_000,
  prefillPerContextTokenSeconds: 4e-9,
};

/** A session: each turn adds tokens to its context, generates some, and ends with a pause. */
interface Session {
  id: string;
  group: string;
  startsAt: number;
  turns: { added: number; made: number; pauseSeconds: number }[];
}

const PREFIX_TOKENS = 640;

function drawSessions(seed: number, count: number): Session[] {
  const random = new RandomStream('agent turns', seed);
  const between = (least: number, most: number) => least + Math.floor((most - least) * random.uniform());
  return Array.from({ length: count }, (_, index) => ({
    id: `s${index}`,
    group: `g${index % 5}`,
    startsAt: 20 * random.uniform(),
    turns: Array.from({ length: between(2, 9) }, () => ({
      added: between(100, 900),
      made: between(40, 200),
      pauseSeconds: 12 * random.uniform(),
    })),
  }));
}

/** An engine that the sessions run on. `run` moves on, at most to this time; it returns the time and the ended ids. */
interface Engine {
  add(sequence: EngineSequence): void;
  run(now: number, until: number): { now: number; finished: string[] };
}

/** Runs the sessions to their ends. Returns the time of the last end, seconds. */
function runSessions(sessions: Session[], engine: Engine): number {
  const due = sessions.map((session) => ({ session, turn: 0, at: session.startsAt, context: PREFIX_TOKENS }));
  const running = new Map<string, (typeof due)[number]>();
  let [now, lastEnd] = [0, 0];
  while (due.length + running.size > 0) {
    due.sort((one, other) => one.at - other.at);
    while (due[0] && due[0].at <= now) {
      const one = due.shift()!;
      const { id, group, turns } = one.session;
      one.context += turns[one.turn]!.added;
      running.set(id, one);
      engine.add({
        id,
        contextTokens: one.context,
        prefillTokens: one.context,
        remainingTokens: turns[one.turn]!.made,
        prefixes: [{ key: group, tokens: PREFIX_TOKENS }],
        contextKey: id,
      });
    }
    const moved = engine.run(now, due[0]?.at ?? Infinity);
    now = moved.now;
    for (const id of moved.finished) {
      const one = running.get(id)!;
      const { made, pauseSeconds } = one.session.turns[one.turn]!;
      running.delete(id);
      lastEnd = now;
      one.turn += 1;
      if (one.turn < one.session.turns.length) {
        due.push({ ...one, at: now + pauseSeconds, context: one.context + made });
      }
    }
  }
  return lastEnd;
}

function runModel(sessions: Session[], of: EngineParameters) {
  const model = new EngineModel(of);
  const seconds = runSessions(sessions, {
    add: (sequence) => model.add(sequence),
    run(now, until) {
      const step = Math.min(until - now, model.secondsToNextEvent());
      const finished = model.advance(step);
      for (const id of finished) model.remove(id);
      return { now: step === until - now ? until : now + step, finished };
    },
  });
  return { ...model.totals, seconds };
}

function runSteps(sessions: Session[], of: EngineParameters) {
  const scheduler = new StepScheduler(of);
  const seconds = runSessions(sessions, {
    add: (sequence) => scheduler.add(sequence),
    run(now, until) {
      if (scheduler.isIdle) return { now: until, finished: [] };
      const before = scheduler.totals.simulatedSeconds;
      const finished = scheduler.step();
      return { now: now + scheduler.totals.simulatedSeconds - before, finished };
    },
  });
  return { ...scheduler.totals, seconds };
}

const SEEDS = [1, 2, 3, 4];
type Totals = ReturnType<typeof runSteps>;

describe('an engine with a block cache and chunked prefill', () => {
  it.each([
    ['all contexts', 400_000],
    ['half of the contexts', 60_000],
    ['a sixth of the contexts', 20_000],
    ['little more than one context', 9_600],
  ])('agrees with a scheduler that works step by step when the memory has room for %s', (_, kvCapacityTokens) => {
    const of = { ...parameters, kvCapacityTokens };
    const model: Totals[] = [];
    const steps: Totals[] = [];
    for (const seed of SEEDS) {
      const sessions = drawSessions(seed, 30);
      model.push(runModel(sessions, of));
      steps.push(runSteps(sessions, of));
    }
    const sum = (all: Totals[], name: keyof Totals) => all.reduce((total, one) => total + one[name], 0);
    const compare = (name: keyof Totals) => sum(model, name) / sum(steps, name);
    expect(compare('seconds'), 'seconds').toBeCloseTo(1, 1.3);
    expect(compare('prefillTokens'), 'tokens computed').toBeCloseTo(1, 1.3);
    const found = sum(steps, 'hitTokens') + sum(steps, 'prefillTokens');
    expect(Math.abs(sum(model, 'hitTokens') - sum(steps, 'hitTokens')) / found, 'tokens found').toBeLessThan(0.02);
    const most = Math.max(40, sum(steps, 'preemptions'));
    expect(Math.abs(sum(model, 'preemptions') - sum(steps, 'preemptions')) / most, 'preemptions').toBeLessThan(0.15);
  });

  it('decodes beside a prefill, slower by the time of its chunks', () => {
    const model = new EngineModel({ ...parameters, stepPerKvTokenSeconds: 0, prefillPerContextTokenSeconds: 0 });
    model.add({ id: 'decodes', contextTokens: 0, prefillTokens: 0, remainingTokens: 1_000 });
    model.add({ id: 'computes', contextTokens: 511 * 20, prefillTokens: 511 * 20, remainingTokens: 10 });
    const step = stepSeconds(model.parameters, 1, 0) + 511 / 20_000;
    expect(model.secondsToNextEvent()).toBeCloseTo(20 * step, 9);
    model.advance(20 * step);
    expect([model.made('decodes'), model.made('computes')]).toEqual([20, 0]);
    expect(model.secondsSinceDecode('computes')).toBeCloseTo(0, 9);
    model.advance(5 * stepSeconds(model.parameters, 2, 0));
    expect([model.made('decodes'), model.made('computes')]).toEqual([25, 5]);
  });

  it('keeps the chunks of a prefill that is preempted in the cache, and counts no token twice', () => {
    const model = new EngineModel({ ...parameters, kvCapacityTokens: 19_985 });
    model.add({ id: 'first', contextTokens: 9_990, prefillTokens: 0, remainingTokens: 100 });
    model.add({ id: 'late', contextTokens: 9_970, prefillTokens: 9_970, remainingTokens: 1, contextKey: 'late' });
    while (model.totals.preemptions === 0) model.advance(model.secondsToNextEvent());
    const computed = model.totals.prefillTokens;
    expect(computed).toBeGreaterThan(4_000);
    while (model.state('late') !== 'finished') model.advance(model.secondsToNextEvent());
    expect(model.totals.prefillTokens).toBeLessThan(9_970 + 16 + 100);
  });

  it('drops the context of a closed session', () => {
    const model = new EngineModel(parameters);
    const turn = { contextTokens: 1_600, prefillTokens: 1_600, remainingTokens: 1, contextKey: 'session' };
    for (const id of ['first', 'second']) {
      model.add({ ...turn, id });
      while (model.state(id) !== 'finished') model.advance(model.secondsToNextEvent());
    }
    expect(model.totals.hitTokens).toBe(1_600);
    model.closeSession('session');
    model.add({ ...turn, id: 'third' });
    expect(model.totals).toMatchObject({ hitTokens: 1_600, prefillTokens: 3_200 });
  });

  it('refuses steps that the sequences of a full batch would use up, and steps without a prefix cache', () => {
    expect(() => new EngineModel({ ...parameters, stepTokens: 64 })).toThrow(RangeError);
    expect(() => new EngineModel({ ...parameters, chunkTokensWithoutCache: 512 })).toThrow(RangeError);
  });
});
