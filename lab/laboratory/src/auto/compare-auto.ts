import type { AutoBound, TailPolicy } from '@broomwagon/contracts';
import { brokenBounds, DEFAULT_VERSION_SPAN } from '@broomwagon/policies';
import { mean, runSetup, WAIT } from '../experiments/run-setup';
import type { Setup } from '../parameters';
import { generatedWorkload, type Workload } from '../workload/workload';

/** Step from which `auto` is compared: before, `auto` has few measurements and changes its choices slowly. */
export const FIRST_STEP = 10;
/** Number of steps in which drifting lengths double. */
const STEPS_TO_DOUBLE = 50;

export interface AutoComparison {
  /** Seconds of a step of `wait`; means over the seeds, here and below unless stated. */
  waitSeconds: number;
  autoSeconds: number;
  /** The fastest fixed policy that keeps the bounds. */
  best: { name: string; seconds: number };
  /** Speed of `auto` / of the best fixed policy. */
  ratio: number;
  /** Least ratio over the seeds, each against the fastest fixed policy of the seed. */
  worstRatio: number;
  /** Highest version span of `auto` over all seeds; the fields below are also of `auto`. */
  versionSpan: number;
  offPolicyShare: number;
  wasteShare: number;
  /** True length bias. */
  lengthBias: number;
  /** Length bias by the ledger, which `maxLengthBias` bounds. */
  ledgerBias: number;
}

/** Bounds of `auto` besides its version span. */
export type Bounds = Pick<TailPolicy, Exclude<AutoBound, 'maxVersionSpan'>>;

export interface ComparisonChoices {
  /** Bounds of `auto`, and of every fixed policy that it is compared with. */
  bounds?: Bounds;
  steps: number;
  seeds: readonly number[];
  overProvisions: readonly number[];
  /** Whether lengths grow, so that their mean doubles over 50 steps. */
  drifts: boolean;
}

/**
 * Every policy, with the version span of `auto`; `regenerate` only with a bound of the length bias. The fixed
 * concurrency is the number of requests of one step.
 */
export function fixedPolicies(
  setup: Setup,
  { overProvisions, bounds }: Pick<ComparisonChoices, 'overProvisions' | 'bounds'>,
): TailPolicy[] {
  const bound = { maxVersionSpan: DEFAULT_VERSION_SPAN };
  const isBiased = bounds?.maxLengthBias !== undefined;
  const concurrency = setup.groupsPerStep * setup.samples;
  return [
    WAIT,
    ...overProvisions.flatMap((overProvision): TailPolicy[] => [
      { ...bound, name: 'resume', overProvision },
      { ...bound, name: 'drip', overProvision },
      { ...bound, name: 'fixed-concurrency', overProvision, concurrency },
      ...(isBiased ? [{ name: 'regenerate' as const, overProvision }] : []),
    ]),
  ];
}

/** Compared measures of a run. */
export interface MeasuredRun {
  /** Mean seconds of the steps from {@link FIRST_STEP} on, while there is new data. */
  lateSeconds: number;
  versionSpan: number;
  offPolicyShare: number;
  wasteShare: number;
  lengthBias: number;
  ledgerBias: number;
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
    ledgerBias: ledger.lengthBias,
  };
}

/** Rolls the same data sets out under `auto` and under every fixed policy. */
export function compareAuto(
  setup: Setup,
  { steps, seeds, drifts, ...choices }: ComparisonChoices,
  measure: typeof measureRun = measureRun,
): AutoComparison {
  const run = (policy: TailPolicy): MeasuredRun[] =>
    seeds.map((seed) => measure(setup, { policy, seed, steps, drifts }));
  const auto = run({ name: 'auto', ...choices.bounds });
  const fixed = fixedPolicies(setup, choices).map((policy) => ({ name: formatPolicyName(policy), runs: run(policy) }));
  const keeps = ({ ledgerBias, ...costs }: MeasuredRun): boolean =>
    brokenBounds({ ...choices.bounds }, { ...costs, lengthBias: ledgerBias }).length === 0;
  const kept = fixed.filter(({ runs }) => runs.every(keeps));
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
    ledgerBias: mean(auto.map(({ ledgerBias }) => ledgerBias)),
  };
}

export function formatPolicyName({ name, overProvision }: TailPolicy): string {
  return name === 'wait' || name === 'auto' ? name : `${name} ${overProvision}`;
}

/** Workload with the lengths of a setup, longer with each prompt, up to the same cap. */
function driftingWorkload({ model, lengths, capTokens, promptTokens, groupsPerStep }: Setup, seed: number): Workload {
  const first = generatedWorkload(model, { ...lengths, capTokens }, seed, promptTokens);
  return {
    ...first,
    getLength: (prompt, sample, draw) => {
      const factor = 2 ** (prompt / (groupsPerStep * STEPS_TO_DOUBLE));
      return Math.min(capTokens, Math.round(first.getLength(prompt, sample, draw) * factor));
    },
  };
}
