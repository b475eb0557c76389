import { ContiguousRouter, unrouted } from '../baselines/routers';
import { SeerDispatcher, type SeerKnowledge } from '../baselines/seer-dispatcher';
import { SETUPS } from '../parameters';
import type { Experiment, Measures } from './experiment';
import { runSetup } from './run-setup';

/** Shares of the variance between prompts (how well siblings predict each other): a low one, and the fitted one. */
const PROMPT_SHARES = { low: 0.41, fitted: SETUPS.seer.lengths.promptShare };

/** Seer's ablation: veRL's chunks per worker, divided rollout, with context, with true lengths. One step of 9,600. */
export const seer: Experiment = {
  id: 'seer',
  run({ seed }) {
    const measures: Measures = {};
    const setup = SETUPS.seer;
    const requests = setup.groupsPerStep * setup.samples;
    for (const [shareName, share] of Object.entries(PROMPT_SHARES)) {
      const lengths = { ...setup.lengths, promptShare: share };
      const name = `seer.${shareName}`;
      const router = new ContiguousRouter(setup.servers, requests);
      const base = runSetup(setup, { steps: 1, seed, lengths, router });
      measures[`${name}.base.seconds`] = base.stepSeconds;
      measures[`${name}.base.idle`] = base.idleShare;
      measures[`${name}.base.tail`] = base.tailShare;
      measures[`${name}.base.gap`] = base.gapShare;
      measures[`${name}.base.preemptions`] = base.outcome.preemptions;
      const spread = runSetup(setup, { steps: 1, seed, lengths });
      measures[`${name}.spread.speedup`] = base.stepSeconds / spread.stepSeconds;
      for (const knowledge of ['none', 'context', 'oracle'] satisfies SeerKnowledge[]) {
        const run = runSetup(setup, {
          steps: 1,
          seed,
          lengths,
          router: unrouted,
          dispatcher: (placement, claim) => new SeerDispatcher(placement, claim, setup.capTokens, knowledge),
        });
        measures[`${name}.${knowledge}.speedup`] = base.stepSeconds / run.stepSeconds;
        measures[`${name}.${knowledge}.tail`] = run.tailSeconds / base.tailSeconds;
      }
    }
    return measures;
  },
};
