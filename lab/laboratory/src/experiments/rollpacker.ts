import type { RoundKind, TailPolicy } from '@broomwagon/contracts';
import type { LengthDistribution } from '@broomwagon/models';
import { FIGURE_11, PREEMPTIONS, type RollpackerCap } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup, WAIT } from './run-setup';

/** Policies of the runs in RollPacker's figure 11, and `resume` beside them. */
const POLICIES: Record<string, TailPolicy> = {
  base: WAIT,
  'p-1.125': { name: 'regenerate', overProvision: 1.125 },
  'p-1.25': { name: 'regenerate', overProvision: 1.25 },
  'p-1.5': { name: 'regenerate', overProvision: 1.5 },
  'r-1.125': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.125 },
  'r-1.25': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.25 },
  'r-1.5': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.5 },
  'both-1.25': { name: 'regenerate', overProvision: 1.25, sampleOverProvision: 1.25 },
  'resume-1.25': { name: 'resume', overProvision: 1.25 },
};

/** Iterations per run of figure 11 (`--total_iterations 10`); the data set is longer, so that all are full. */
const ITERATIONS = 10;
const STEPS = 15;

/**
 * Seconds as in figure 11, by the script that draws it (plot/plt_sensitive_squeezer.py of the artifact): over the whole
 * periods of n short rounds and a long one, (n x the longest short round + the longest long round) / (n + 1); without
 * long rounds, the longest of the ten iterations.
 */
export function figureSeconds(rounds: readonly { kind: RoundKind; seconds: number }[], overProvision: number): number {
  const shorts = overProvision > 1 ? Math.floor(1 / (overProvision - 1)) : 0;
  const period = shorts + 1;
  const whole = rounds.slice(0, Math.floor(ITERATIONS / period) * period);
  const longest = (isLong: boolean): number =>
    Math.max(...whole.filter(({ kind }) => (kind === 'long') === isLong).map(({ seconds }) => seconds));
  return shorts === 0 ? longest(false) : (shorts * longest(false) + longest(true)) / period;
}

/** One run of figure 11: its seconds without training and new weights, as published; its bias, waste and variation. */
function run(cap: RollpackerCap, name: string, seed: number, other?: Partial<LengthDistribution>): Measures {
  const setup = FIGURE_11[cap];
  const policy = POLICIES[name]!;
  const lengths = { ...setup.lengths, ...other };
  const result = runSetup(setup, { policy, seed, steps: STEPS, lengths, overheadSeconds: 0 });
  return {
    seconds: figureSeconds(result.outcome.steps, policy.overProvision!),
    mean: result.stepSeconds,
    bias: result.lengthBias,
    capBias: result.capBias,
    waste: result.ledger.waste.share,
    batchVariation: result.ledger.batchVariation,
  };
}

/** Runs figure 11 at one cap, with other lengths if given. */
export function figureEleven(cap: RollpackerCap, seed: number, other?: Partial<LengthDistribution>): Measures {
  const measures: Measures = {};
  for (const name of Object.keys(POLICIES)) {
    for (const [what, value] of Object.entries(run(cap, name, seed, other))) {
      measures[`${cap}.${name}.${what}`] = value;
    }
    measures[`${cap}.${name}.speedup`] = measures[`${cap}.base.seconds`]! / measures[`${cap}.${name}.seconds`]!;
  }
  return measures;
}

/** RollPacker's table of over-provisions, one experiment per cap. */
export const rollpacker: Experiment[] = (Object.keys(FIGURE_11) as RollpackerCap[]).map((cap) => ({
  id: `rollpacker-${cap}`,
  run: ({ seed }) => figureEleven(cap, seed),
}));

/**
 * Preemptions under KV pressure: mean number per short round of engines with little KV, without a policy, with
 * over-provision and with a fixed concurrency. The last round of the data is left out, since it takes all deferred
 * groups.
 */
export const preemptions: Experiment = {
  id: 'preemptions',
  run({ seed, isQuick }) {
    const count = (policy: TailPolicy): number => {
      const { outcome } = runSetup(PREEMPTIONS, { policy, seed, steps: isQuick ? 4 : 10 });
      const shorts = outcome.steps.filter(({ kind, isWithinData }) => kind === 'short' && isWithinData);
      return shorts.reduce((sum, step) => sum + step.preemptions, 0) / shorts.length;
    };
    const both = { overProvision: 1.25, sampleOverProvision: 1.25 };
    return {
      'preemptions.base': count(WAIT),
      'preemptions.both-1.25': count({ name: 'regenerate', ...both }),
      'preemptions.concurrency': count({ name: 'fixed-concurrency', overProvision: 1.25, concurrency: 256 }),
    };
  },
};
