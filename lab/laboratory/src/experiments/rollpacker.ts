import type { TailPolicy } from '@broomwagon/contracts';
import { SETUPS } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup, WAIT } from './run-setup';

const CAPS = ['8k', '16k', '32k'] as const;
const policies = (): Record<string, TailPolicy> => ({
  base: WAIT,
  'p-1.125': { name: 'regenerate', overProvision: 1.125 },
  'p-1.25': { name: 'regenerate', overProvision: 1.25 },
  'p-1.5': { name: 'regenerate', overProvision: 1.5 },
  'r-1.125': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.125 },
  'r-1.25': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.25 },
  'r-1.5': { name: 'regenerate', overProvision: 1, sampleOverProvision: 1.5 },
  'both-1.25': { name: 'regenerate', overProvision: 1.25, sampleOverProvision: 1.25 },
  'resume-1.25': { name: 'resume', overProvision: 1.25 },
});

/** Whole periods of short and long rounds at 1.125, 1.25 and 1.5; without a queue a step is like any other. */
const STEPS = { withQueue: 45, without: 15, quick: 15 };

/** RollPacker's table of over-provisions, and `resume` beside it. */
export const rollpacker: Experiment[] = CAPS.map((cap) => ({
  id: `rollpacker-${cap}`,
  run({ seed, isQuick }) {
    const measures: Measures = {};
    for (const [name, policy] of Object.entries(policies())) {
      const steps = isQuick ? STEPS.quick : policy.overProvision! > 1 ? STEPS.withQueue : STEPS.without;
      const run = runSetup(SETUPS[`rollpacker${cap}`], { policy, seed, steps });
      measures[`${cap}.${name}.seconds`] = run.stepSeconds;
      measures[`${cap}.${name}.speedup`] = measures[`${cap}.base.seconds`]! / run.stepSeconds;
      measures[`${cap}.${name}.bias`] = run.lengthBias;
      measures[`${cap}.${name}.capBias`] = run.capBias;
      measures[`${cap}.${name}.waste`] = run.ledger.waste.share;
      measures[`${cap}.${name}.batchVariation`] = run.ledger.batchVariation;
    }
    return measures;
  },
}));

/**
 * KV pressure: what over-provision does to preemptions of an engine with little KV, and what a fixed concurrency does.
 */
export const preemptions: Experiment = {
  id: 'preemptions',
  run({ seed, isQuick }) {
    const count = (policy: TailPolicy): number => {
      const { outcome } = runSetup(SETUPS.rollpacker8b, { policy, seed, steps: isQuick ? 2 : 4 });
      return outcome.preemptions / outcome.steps.length;
    };
    const both = { overProvision: 1.25, sampleOverProvision: 1.25 };
    return {
      'preemptions.base': count(WAIT),
      'preemptions.both-1.25': count({ name: 'regenerate', ...both }),
      'preemptions.concurrency': count({ name: 'fixed-concurrency', overProvision: 1.25, concurrency: 256 }),
    };
  },
};
