import { ROLLOUT_SHARE, SETUPS, type Setup } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup } from './run-setup';

/** Medians that make the cap 2 and 2.6 times the mean. */
const APRIL_MEDIANS = { tight: 3_600, wide: 2_600 };

/** APRIL is `drip` as it is by default: what was cut goes first, new groups fill up, and the step takes the first N. */
export const april: Experiment = {
  id: 'april',
  run({ seed, isQuick }) {
    const measures: Measures = {};
    const steps = isQuick ? 10 : 40;
    for (const [name, medianTokens] of Object.entries(APRIL_MEDIANS)) {
      const lengths = { ...SETUPS.april.lengths, medianTokens };
      const base = runSetup(SETUPS.april, { steps, seed, lengths });
      measures[`april.${name}.capOverMean`] = SETUPS.april.capTokens / base.ledger.trained.meanTokens;
      for (const overProvision of [1.5, 2]) {
        const run = runSetup(SETUPS.april, { steps, seed, lengths, policy: { name: 'drip', overProvision } });
        measures[`april.${name}.${overProvision}.speedup`] = base.stepSeconds / run.stepSeconds;
        measures[`april.${name}.${overProvision}.offPolicy`] = run.ledger.offPolicyShare;
        measures[`april.${name}.${overProvision}.span`] = run.ledger.versionSpan.max;
      }
    }
    return measures;
  },
};

/** CoPRIS: 1,024 requests in flight, twice what a step trains, at several caps. */
export const copris: Experiment = {
  id: 'copris',
  run({ seed, isQuick }) {
    const measures: Measures = {};
    for (const [name, capTokens] of Object.entries({ '8k': 8_192, '15k': 15_360, '40k': 40_960 })) {
      const setup: Setup = { ...SETUPS.copris, capTokens };
      const steps = isQuick ? 8 : 30;
      const base = runSetup(setup, { steps, seed });
      const policy = { name: 'fixed-concurrency', overProvision: 2, concurrency: 1_024 } as const;
      const run = runSetup(setup, { steps, seed, policy });
      const speedup = base.stepSeconds / run.stepSeconds;
      measures[`copris.${name}.speedup`] = speedup;
      measures[`copris.${name}.endToEnd`] = 1 / (1 - ROLLOUT_SHARE + ROLLOUT_SHARE / speedup);
      measures[`copris.${name}.offPolicy`] = run.ledger.offPolicyShare;
    }
    return measures;
  },
};
