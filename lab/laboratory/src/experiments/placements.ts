import { AgenticRun } from '../agentic/agentic-run';
import { RandomRouter } from '../baselines/random-router';
import { TailPoolDispatcher } from '../baselines/tail-pool-dispatcher';
import { AGENTIC, SETUPS, type Setup } from '../parameters';
import { ProductionRouter } from '../routing/production-router';
import type { Router } from '../routing/router';
import type { Experiment, Measures } from './experiment';
import { runSetup } from './run-setup';

const SIBLINGS = ['rollpacker8k', 'rollpacker16k', 'rollpacker32k', 'thinking32k', 'seer'] as const;

/** All samples of a prompt on one server against spread ones. */
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

/** TailSieve: cut groups are generated again on separate servers, as many per step as end at the pace of the others. */
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

/** Trajectories of many turns under four ways to route them. */
export const agentic: Experiment = {
  id: 'agentic',
  run({ seed }) {
    const { servers } = AGENTIC;
    const ways: Record<string, Router> = {
      'sticky-least-inflight': new ProductionRouter(servers),
      'sticky-least-sessions': new ProductionRouter(servers, { policy: 'least-sessions' }),
      'consistent-hash': new ProductionRouter(servers, { policy: 'consistent-hash' }),
      'least-inflight': new WithoutSessions(new ProductionRouter(servers)),
      random: new RandomRouter(servers, seed),
    };
    const measures: Measures = {};
    for (const [name, router] of Object.entries(ways)) {
      const { meanSeconds, p90Seconds, maxSeconds, cacheHitShare } = new AgenticRun(AGENTIC, router, seed).run();
      measures[`agentic.${name}.mean`] = meanSeconds;
      measures[`agentic.${name}.p90`] = p90Seconds;
      measures[`agentic.${name}.max`] = maxSeconds;
      measures[`agentic.${name}.hit`] = cacheHitShare;
    }
    const sticky = measures['agentic.sticky-least-inflight.p90']!;
    measures['agentic.hash.slowdown'] = measures['agentic.consistent-hash.p90']! / sticky;
    return measures;
  },
};

/** Each turn as if it were the first. */
class WithoutSessions implements Router {
  constructor(private readonly inner: Router) {}

  get name(): string {
    return `${this.inner.name} without sessions`;
  }

  choose(routeRequest: Parameters<Router['choose']>[0]): number | undefined {
    return this.inner.choose({ ...routeRequest, sessionId: undefined });
  }

  released(server: number, routeRequest: Parameters<Router['released']>[1]): void {
    this.inner.released(server, { ...routeRequest, sessionId: undefined });
  }

  moved(): void {}
}
