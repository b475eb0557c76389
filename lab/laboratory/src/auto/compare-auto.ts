import type { TailPolicy } from '@broomwagon/contracts';
import { mean, runSetup, WAIT } from '../experiments/run-setup';
import type { Setup } from '../parameters';
import { generatedWorkload, type Workload } from '../workload/workload';

/** The step from which `auto` is compared: before, it knows little, and goes by small steps. */
export const FIRST_STEP = 10;
/** The bound of `auto` if the trainer gives none. */
const MAX_VERSION_SPAN = 2;
/** Steps in which drifting lengths double. */
const STEPS_TO_DOUBLE = 50;

export interface AutoComparison {
  /** Seconds of a step of `wait`, the mean over the seeds, as all that follows. */
  waitSeconds: number;
  autoSeconds: number;
  /** The fastest fixed policy that keeps the bounds. */
  best: { name: string; seconds: number };
  /** Speed of `auto` / of the best fixed policy. */
  ratio: number;
  /** The same for the seed in which it is least. */
  worstRatio: number;
  /** Of `auto`; the highest of all seeds. */
  versionSpan: number;
  offPolicyShare: number;
  wasteShare: number;
  lengthBias: number;
}

export interface ComparisonChoices {
  steps: number;
  seeds: readonly number[];
  overProvisions: readonly number[];
  /** Lengths grow, so that their mean doubles over 50 steps. */
  drifts: boolean;
}

/** Every unbiased policy, with the bound that `auto` has; the fixed concurrency is that of one step. */
export function fixedPolicies(setup: Setup, overProvisions: readonly number[]): TailPolicy[] {
  const bound = { maxVersionSpan: MAX_VERSION_SPAN };
  const concurrency = setup.groupsPerStep * setup.samples;
  return [
    WAIT,
    ...overProvisions.flatMap((overProvision): TailPolicy[] => [
      { ...bound, name: 'resume', overProvision },
      { ...bound, name: 'drip', overProvision },
      { ...bound, name: 'fixed-concurrency', overProvision, concurrency },
    ]),
  ];
}

/** What is compared of a run. */
export interface MeasuredRun {
  /** Mean of the steps from {@link FIRST_STEP} on, while there is new data. */
  lateSeconds: number;
  versionSpan: number;
  offPolicyShare: number;
  wasteShare: number;
  lengthBias: number;
}

export type RunToMeasure = { policy: TailPolicy; seed: number } & Pick<ComparisonChoices, 'steps' | 'drifts'>;

export function measureRun(setup: Setup, { policy, seed, steps, drifts }: RunToMeasure): MeasuredRun {
  const workload = drifts ? driftingWorkload(setup, seed) : undefined;
  const { outcome, ledger, lengthBias } = runSetup(setup, { policy, steps, seed, workload });
  const late = outcome.steps.filter(({ step, isWithinData }) => isWithinData && step >= FIRST_STEP);
  return {
    lateSeconds: mean(late.map(({ seconds }) => seconds)),
    versionSpan: ledger.versionSpan.max,
    offPolicyShare: ledger.offPolicyShare,
    wasteShare: ledger.waste.share,
    lengthBias,
  };
}

/** Rolls the same data sets out under `auto` and under every fixed policy. */
export function compareAuto(
  setup: Setup,
  { steps, seeds, overProvisions, drifts }: ComparisonChoices,
  measure: typeof measureRun = measureRun,
): AutoComparison {
  const run = (policy: TailPolicy): MeasuredRun[] =>
    seeds.map((seed) => measure(setup, { policy, seed, steps, drifts }));
  const auto = run({ name: 'auto' });
  const fixed = fixedPolicies(setup, overProvisions).map((policy) => ({ name: nameOf(policy), runs: run(policy) }));
  const kept = fixed.filter(({ runs }) => runs.every(({ versionSpan }) => versionSpan <= MAX_VERSION_SPAN));
  const seconds = (runs: readonly MeasuredRun[]): number => mean(runs.map(({ lateSeconds }) => lateSeconds));
  const [best] = kept
    .map(({ name, runs }) => ({ name, runs, seconds: seconds(runs) }))
    .sort((one, other) => one.seconds - other.seconds);
  const worst = auto.map(
    ({ lateSeconds }, index) => Math.min(...kept.map(({ runs }) => runs[index]!.lateSeconds)) / lateSeconds,
  );
  return {
    waitSeconds: seconds(fixed[0]!.runs),
    autoSeconds: seconds(auto),
    best: { name: best!.name, seconds: best!.seconds },
    ratio: best!.seconds / seconds(auto),
    worstRatio: Math.min(...worst),
    versionSpan: Math.max(...auto.map(({ versionSpan }) => versionSpan)),
    offPolicyShare: mean(auto.map(({ offPolicyShare }) => offPolicyShare)),
    wasteShare: mean(auto.map(({ wasteShare }) => wasteShare)),
    lengthBias: mean(auto.map(({ lengthBias }) => lengthBias)),
  };
}

export function nameOf({ name, overProvision }: TailPolicy): string {
  return name === 'wait' || name === 'auto' ? name : `${name} ${overProvision}`;
}

/** The lengths of a setup, longer with each prompt, up to the same cap. */
function driftingWorkload({ model, lengths, capTokens, promptTokens, groupsPerStep }: Setup, seed: number): Workload {
  const first = generatedWorkload(model, { ...lengths, capTokens }, seed, promptTokens);
  return {
    ...first,
    lengthOf: (prompt, sample, draw) => {
      const factor = 2 ** (prompt / (groupsPerStep * STEPS_TO_DOUBLE));
      return Math.min(capTokens, Math.round(first.lengthOf(prompt, sample, draw) * factor));
    },
  };
}
