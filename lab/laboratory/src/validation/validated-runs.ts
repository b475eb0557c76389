import { mean } from '../experiments/run-setup';

/** Policies that `validate` can run, as options of `npm start`. */
export const VALIDATED_POLICIES = {
  wait: ['--tail-policy', 'wait'],
  regenerate: ['--tail-policy', 'regenerate'],
  resume: ['--tail-policy', 'resume'],
  'resume-adaptive': ['--tail-policy', 'resume', '--adaptive-over-provision'],
  drip: ['--tail-policy', 'drip'],
  'drip-adaptive': ['--tail-policy', 'drip', '--adaptive-over-provision', '--adaptive-drip'],
  'fixed-concurrency': ['--tail-policy', 'fixed-concurrency'],
  auto: ['--tail-policy', 'auto'],
};
export type ValidatedPolicy = keyof typeof VALIDATED_POLICIES;

/** A policy in services and simulation: seconds of simulated time by step. */
export interface ValidatedRun {
  policy: ValidatedPolicy;
  /** Times from the opening of the round to its completion, by the clock of the services. */
  services: number[];
  /** Busy times of the busiest engine by its own clock, without the time in which it waited for services. */
  engines: number[];
  simulation: number[];
  /** Share by which the clocks of the engines fell behind. */
  clockLagShare: number;
}

/** Table of all steps of all runs. */
export function stepTable(runs: readonly ValidatedRun[]): { head: string[]; rows: string[][] } {
  const head = ['policy', 'step', 'services, s', 'engines, s', 'simulation, s', 'simulation / services'];
  const rows = runs.flatMap(({ policy, services, engines, simulation }) =>
    Array.from({ length: Math.max(services.length, simulation.length) }, (_, index) => [
      policy,
      `${index + 1}`,
      ...[services, engines, simulation].map((steps) => fixed(steps[index], 1)),
      fixed(over(simulation[index], services[index]), 2),
    ]),
  );
  return { head, rows };
}

const SOURCES = ['services', 'engines', 'simulation'] as const;

/** Table of mean steps and speeds of all runs: mean step of `wait` / mean step of the run, if `wait` was run too. */
export function meanTable(runs: readonly ValidatedRun[]): { head: string[]; rows: string[][] } {
  const wait = runs.find(({ policy }) => policy === 'wait');
  const head = [
    'policy',
    ...SOURCES.map((source) => `${source}, s`),
    'simulation / services',
    ...SOURCES.map((source) => `speed, ${source}`),
    'clock lag',
  ];
  const rows = runs.map((run) => [
    run.policy,
    ...SOURCES.map((source) => fixed(mean(run[source]), 1)),
    fixed(over(mean(run.simulation), mean(run.services)), 2),
    ...SOURCES.map((source) => fixed(over(wait && mean(wait[source]), mean(run[source])), 2)),
    `${(100 * run.clockLagShare).toFixed(1)} %`,
  ]);
  return { head, rows };
}

function over(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || !other ? undefined : one / other;
}

/** Formats a number; an unknown one is left empty. */
function fixed(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? '' : value.toFixed(digits);
}
