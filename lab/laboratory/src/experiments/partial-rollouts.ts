import { ROLLOUT_SHARE, SETUPS, type Setup } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup } from './run-setup';

/** Medians that make the cap 2 and 2.5 times the mean. */
const APRIL_MEDIANS = { tight: 3_450, wide: 2_450 };

/** APRIL is `drip` with its defaults: cut groups go first, new groups fill up, the step takes the first N groups. */
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

/** Cap at which the rollout's share of a step was measured. */
const MEASURED_CAP = '15k';
const COPRIS_CAPS = { '8k': 8_192, [MEASURED_CAP]: 15_360, '40k': 40_960 };

/**
 * CoPRIS: 1,024 requests in flight, twice the samples of a step, at several caps. Training takes the same time per
 * token at every cap; the time follows from {@link ROLLOUT_SHARE} at the cap where the share was measured.
 */
export const copris: Experiment = {
  id: 'copris',
  run({ seed, isQuick }) {
    const steps = isQuick ? 8 : 30;
    const policy = { name: 'fixed-concurrency', overProvision: 2, concurrency: 1_024 } as const;
    const runs = Object.entries(COPRIS_CAPS).map(([name, capTokens]) => {
      const setup: Setup = { ...SETUPS.copris, capTokens };
      return { name, base: runSetup(setup, { steps, seed }), run: runSetup(setup, { steps, seed, policy }) };
    });
    const measured = runs.find(({ name }) => name === MEASURED_CAP)!.base;
    const trainingSeconds = (measured.stepSeconds * (1 - ROLLOUT_SHARE)) / ROLLOUT_SHARE;
    const measures: Measures = {};
    for (const { name, base, run } of runs) {
      const training = (trainingSeconds * base.ledger.trained.meanTokens) / measured.ledger.trained.meanTokens;
      measures[`copris.${name}.speedup`] = base.stepSeconds / run.stepSeconds;
      measures[`copris.${name}.endToEnd`] = (base.stepSeconds + training) / (run.stepSeconds + training);
      measures[`copris.${name}.rolloutShare`] = base.stepSeconds / (base.stepSeconds + training);
      measures[`copris.${name}.offPolicy`] = run.ledger.offPolicyShare;
    }
    return measures;
  },
};
