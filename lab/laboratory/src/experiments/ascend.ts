import type { RebalancePolicy } from '@broomwagon/policies';
import { ContiguousRouter } from '../baselines/routers';
import { SETUPS, type Setup } from '../parameters';
import { TierMover } from '../rollout/tier-mover';
import type { Experiment } from './experiment';
import { runSetup } from './run-setup';

const TIERS = [64, 32, 16, 8, 4];
/** Decode steps between plans: 1,000 for the published rule; our rule plans after events, since no server must stop. */
const EVERY_STEPS: Record<RebalancePolicy, number> = { 'tier-min': 1_000, 'tier-cost': 0 };

/**
 * The rebalance for ranks in lockstep: graphs of one size or of several, requests moved or not, siblings spread or not.
 */
export const ascend: Experiment = {
  id: 'ascend',
  run({ seed }) {
    const seconds = (graphTiers: number[], isSpread: boolean, policy?: RebalancePolicy) => {
      const setup: Setup = { ...SETUPS.ascend, engine: { ...SETUPS.ascend.engine, graphTiers } };
      const { servers, groupsPerStep, samples, capTokens } = setup;
      return runSetup(setup, {
        steps: 1,
        seed,
        ...(!isSpread && { router: new ContiguousRouter(servers, groupsPerStep * samples) }),
        ...(policy && {
          mover: (placement, held) =>
            new TierMover(placement, held, { policy, tiers: TIERS, capTokens, everySteps: EVERY_STEPS[policy] }),
        }),
      });
    };
    const [one, several] = [[64], TIERS.toReversed()];
    const base = seconds(one, false).stepSeconds;
    const published = seconds(several, false, 'tier-min');
    const cost = seconds(several, false, 'tier-cost');
    return {
      'ascend.base.seconds': base,
      'ascend.graphs.speedup': base / seconds(several, false).stepSeconds,
      'ascend.moves.speedup': base / seconds(one, false, 'tier-min').stepSeconds,
      'ascend.both.seconds': published.stepSeconds,
      'ascend.both.speedup': base / published.stepSeconds,
      'ascend.both.moves': published.outcome.moves,
      'ascend.cost.speedup': base / cost.stepSeconds,
      'ascend.cost.moves': cost.outcome.moves,
      'ascend.spread.speedup': base / seconds(several, true).stepSeconds,
      'ascend.spreadMoves.speedup': base / seconds(several, true, 'tier-cost').stepSeconds,
    };
  },
};
