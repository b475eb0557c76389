import { TailPoolDispatcher } from '../baselines/tail-pool-dispatcher';
import { SETUPS, type Setup } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup } from './run-setup';

const SIBLINGS = ['rollpacker8k', 'rollpacker16k', 'rollpacker32k', 'thinking32k', 'seer'] as const;

/** All samples of a prompt on one server, against samples that are spread. */
export const siblings: Experiment = {
  id: 'siblings',
  run({ seed, isQuick }) {
    const measures: Measures = {};
    for (const name of SIBLINGS) {
      const steps = name === 'seer' ? 1 : isQuick ? 3 : 10;
      const together = { groupPlacement: 'group-affinity', groupAffinityCap: 1_024 } as const;
      const grouped = runSetup(SETUPS[name], { steps, seed, routing: together });
      const spread = runSetup(SETUPS[name], { steps, seed });
      measures[`siblings.${name}.speedup`] = grouped.stepSeconds / spread.stepSeconds;
    }
    return measures;
  },
};

/** TailSieve: cut groups are generated again on separate servers, as many per step as keep pace with the others. */
export const tailsieve: Experiment = {
  id: 'tailsieve',
  run({ seed, isQuick }) {
    const measures: Measures = {};
    for (const groupsPerStep of [64, 256]) {
      const setup: Setup = { ...SETUPS.tailsieve, groupsPerStep };
      const steps = isQuick ? 8 : 30;
      const base = runSetup(setup, { steps, seed });
      for (const overProvision of [1.05, 1.1, 1.25]) {
        const run = runSetup(setup, {
          steps,
          seed,
          policy: { name: 'drip', overProvision, onCut: 'discard', dripMode: 'adaptive' },
          dispatcher: (placement, claim) => new TailPoolDispatcher(placement, claim, 1),
        });
        measures[`tailsieve.${groupsPerStep}.${overProvision}.speedup`] = base.stepSeconds / run.stepSeconds;
        measures[`tailsieve.${groupsPerStep}.${overProvision}.bias`] = run.lengthBias;
      }
    }
    return measures;
  },
};
