import type { TailPolicy } from '@broomwagon/contracts';
import { mean, runSetup, WAIT, type RunChoices, type RunResult } from '../experiments/run-setup';
import type { Setup } from '../parameters';

/** A family of policies: one curve over the over-provisions. */
export interface PolicyFamily {
  name: string;
  policy(overProvision: number): TailPolicy;
}

/** Every policy of production, and RollPacker's use of both axes; the fixed concurrency is the requests of one step. */
export function policyFamilies(setup: Setup): PolicyFamily[] {
  const concurrency = setup.groupsPerStep * setup.samples;
  return [
    { name: 'regenerate', policy: (overProvision) => ({ name: 'regenerate', overProvision }) },
    {
      name: 'regenerate, samples too',
      policy: (overProvision) => ({ name: 'regenerate', overProvision, sampleOverProvision: overProvision }),
    },
    { name: 'resume', policy: (overProvision) => ({ name: 'resume', overProvision }) },
    { name: 'drip', policy: (overProvision) => ({ name: 'drip', overProvision }) },
    {
      name: 'drip, reserved',
      policy: (overProvision) => ({ name: 'drip', overProvision, dripMode: 'adaptive' }),
    },
    {
      name: 'fixed-concurrency',
      policy: (overProvision) => ({ name: 'fixed-concurrency', overProvision, concurrency }),
    },
  ];
}

/** Policies that choose their over-provision themselves: one point each. */
export const ADAPTIVE_FAMILIES: readonly PolicyFamily[] = (['regenerate', 'resume', 'drip'] as const).map((name) => ({
  name: `${name}, adaptive`,
  policy: (overProvision) => ({ name, overProvision, overProvisionMode: 'adaptive' }),
}));

export interface FrontierPoint {
  family: string;
  /** Over-provision; `auto` if the policy chooses it. */
  overProvision: number | 'auto';
  /** Speed of the steps with new data. */
  speedup: number;
  /** Speed over the whole data set, including its end with the deferred groups. */
  wholeSpeedup: number;
  offPolicyShare: number;
  lengthBias: number;
  batchVariation: number;
  wasteShare: number;
  versionSpan: number;
  worstStepSeconds: number;
  /** Least and greatest value of each measure over several seeds. */
  ranges?: Record<Measure, [least: number, most: number]>;
}

export interface Frontier {
  baseSeconds: number;
  points: FrontierPoint[];
}

/** First over-provision of adaptive policies. */
const FIRST_OVER_PROVISION = 1.25;

/** Finds speed against the plain synchronous rollout, and its price, for every policy at every over-provision. */
export function findFrontier(
  setup: Setup,
  overProvisions: readonly number[],
  choices: Omit<RunChoices, 'policy'>,
  watcher: { doing(what: string): void; done(): void },
): Frontier {
  const run = (name: string, policy: TailPolicy): RunResult => {
    watcher.doing(name);
    const result = runSetup(setup, { ...choices, policy });
    watcher.done();
    return result;
  };
  const base = run('wait', WAIT);
  const points = policyFamilies(setup).flatMap((family) =>
    overProvisions.map((overProvision) => ({
      ...computePoint(base, run(`${family.name} ${overProvision}`, family.policy(overProvision))),
      family: family.name,
      overProvision,
    })),
  );
  const adaptive = ADAPTIVE_FAMILIES.map((family) => ({
    ...computePoint(base, run(family.name, family.policy(FIRST_OVER_PROVISION))),
    family: family.name,
    overProvision: 'auto' as const,
  }));
  return { baseSeconds: base.stepSeconds, points: [...points, ...adaptive] };
}

/** Number of runs of {@link findFrontier}. */
export function frontierRuns(setup: Setup, overProvisions: readonly number[]): number {
  return 1 + policyFamilies(setup).length * overProvisions.length + ADAPTIVE_FAMILIES.length;
}

const MEASURES = ['speedup', 'wholeSpeedup', 'offPolicyShare', 'lengthBias', 'batchVariation', 'wasteShare'] as const;
type Measure = (typeof MEASURES)[number];

/** Means of the same frontier over several seeds, with the least and the greatest values. */
export function meanFrontier(frontiers: readonly Frontier[]): Frontier {
  const points = frontiers[0]!.points.map((point, index) => {
    const all = frontiers.map((frontier) => frontier.points[index]!);
    const listValues = (measure: Measure): number[] => all.map((one) => one[measure]);
    const each = <Value>(value: (values: number[]) => Value): Record<Measure, Value> =>
      Object.fromEntries(MEASURES.map((measure) => [measure, value(listValues(measure))])) as Record<Measure, Value>;
    return {
      ...point,
      ...each(mean),
      ranges: each((values): [number, number] => [Math.min(...values), Math.max(...values)]),
      versionSpan: Math.max(...all.map((one) => one.versionSpan)),
      worstStepSeconds: Math.max(...all.map((one) => one.worstStepSeconds)),
    };
  });
  return { baseSeconds: mean(frontiers.map(({ baseSeconds }) => baseSeconds)), points };
}

function computePoint(base: RunResult, run: RunResult): Omit<FrontierPoint, 'family' | 'overProvision'> {
  return {
    speedup: base.stepSeconds / run.stepSeconds,
    wholeSpeedup: base.outcome.seconds / run.outcome.seconds,
    offPolicyShare: run.ledger.offPolicyShare,
    lengthBias: run.lengthBias,
    batchVariation: run.batchVariation,
    wasteShare: run.ledger.waste.share,
    versionSpan: run.ledger.versionSpan.max,
    worstStepSeconds: run.worstStepSeconds,
  };
}
