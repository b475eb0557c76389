import { ROUND_KINDS, type RoundKind } from '@broomwagon/contracts';
import type { StepReport } from '../../../reference-trainer/src/loop/step-report';
import type { RunReport } from './report';

/** Largest lag of a simulated clock with which a report is valid, as a share. */
export const MAX_CLOCK_LAG_SHARE = 0.05;

/** Share of the engines' time in which they were not busy, 0 to 1; null when no time passed. */
export function idleShare(busySeconds: number, passedSeconds: number): number | null {
  return passedSeconds <= 0 ? null : Math.min(1, Math.max(0, 1 - busySeconds / passedSeconds));
}

/** Sums and means of the steps of one kind; `idleShare` and `tailShare` are weighted by wall time. */
export interface KindSummary extends Omit<StepReport, 'step' | 'roundId' | 'kind' | 'tailSeconds' | 'engineSeconds'> {
  kind: RoundKind | 'all';
  steps: number;
  meanWallSeconds: number;
  meanTailSeconds: number;
}

/** Returns a row per step kind that occurred, and a row of all steps if there is more than one kind. */
export function summarize(steps: readonly StepReport[]): KindSummary[] {
  const rows = ROUND_KINDS.map((kind) =>
    summariseKind(
      kind,
      steps.filter((step) => step.kind === kind),
    ),
  ).filter((row) => row.steps > 0);
  return rows.length > 1 ? [...rows, summariseKind('all', steps)] : rows;
}

function summariseKind(kind: KindSummary['kind'], steps: readonly StepReport[]): KindSummary {
  const sum = (value: (step: StepReport) => number): number => steps.reduce((total, step) => total + value(step), 0);
  const wallSeconds = sum((step) => step.wallSeconds);
  const measured = steps.filter((step) => step.idleShare !== null);
  const measuredSeconds = measured.reduce((total, step) => total + step.wallSeconds, 0);
  const idleSeconds = measured.reduce((total, step) => total + (step.idleShare ?? 0) * step.wallSeconds, 0);
  return {
    kind,
    steps: steps.length,
    wallSeconds,
    meanWallSeconds: steps.length === 0 ? 0 : wallSeconds / steps.length,
    idleShare: measuredSeconds === 0 ? null : idleSeconds / measuredSeconds,
    meanTailSeconds: steps.length === 0 ? 0 : sum((step) => step.tailSeconds) / steps.length,
    tailShare: computeTailShare(steps),
    // Means per step, like the wall time.
    meanGenerationSeconds: steps.length === 0 ? 0 : sum((step) => step.meanGenerationSeconds) / steps.length,
    slowestGenerationSeconds: steps.length === 0 ? 0 : sum((step) => step.slowestGenerationSeconds) / steps.length,
    groupsAccepted: sum((step) => step.groupsAccepted),
    requestsDone: sum((step) => step.requestsDone),
    requestsCut: sum((step) => step.requestsCut),
    groupsRequeued: sum((step) => step.groupsRequeued),
  };
}

/** Share of the wall time that is the tail of a round, 0 to 1; 0 without steps. */
export function computeTailShare(steps: readonly Pick<StepReport, 'wallSeconds' | 'tailSeconds'>[]): number {
  const wallSeconds = steps.reduce((sum, step) => sum + step.wallSeconds, 0);
  return wallSeconds === 0 ? 0 : steps.reduce((sum, step) => sum + step.tailSeconds, 0) / wallSeconds;
}

/** Total of the baseline / total of the run; null without a baseline or without time. */
export function computeSpeedup<Field extends 'wallSeconds' | 'engineSeconds'>(
  field: Field,
  run: Pick<RunReport, Field>,
  baseline: Pick<RunReport, Field> | null,
): number | null {
  const [seconds, others] = [run[field] ?? 0, baseline?.[field] ?? null];
  return others === null || seconds <= 0 ? null : others / seconds;
}

/** Sum over the steps of the time that the busiest engine worked, seconds; null if a step was not measured. */
export function sumEngineSeconds(steps: readonly StepReport[]): number | null {
  const seconds = steps.map((step) => step.engineSeconds);
  return seconds.includes(null) ? null : seconds.reduce<number>((sum, one) => sum + one!, 0);
}

/** Reasons why a report is invalid, as sentences; empty if it is valid. */
export function invalidities(
  clockLagShare: number | null,
  runs: readonly Pick<RunReport, 'policy' | 'totals' | 'otherLengths'>[],
  simulatorRestarts = 0,
) {
  const found: string[] = [];
  if (simulatorRestarts > 0) {
    found.push(
      `The times of this report are invalid: the simulated engines ended and were restarted ${simulatorRestarts} ` +
        'times, and their clocks started again.',
    );
  }
  if (clockLagShare !== null && clockLagShare > MAX_CLOCK_LAG_SHARE) {
    found.push(
      `This report is invalid: the simulated clocks lagged by ${percent(clockLagShare)}, more than ` +
        `${percent(MAX_CLOCK_LAG_SHARE)}. Run again with a lower --speed or on a less busy machine.`,
    );
  }
  for (const { policy, totals, otherLengths } of runs) {
    if (otherLengths !== null && otherLengths > 0) {
      found.push(
        `This report is invalid: under ${policy}, ${otherLengths} samples have other lengths than --lengths asks for. ` +
          'Does each vLLM run with the middleware of examples/equal-lengths?',
      );
    }
    if (totals.lost + totals.duplicated + totals.faulty === 0) continue;
    found.push(
      `This report is invalid: under ${policy} the checker counts ${totals.lost} samples lost (${totals.failed} ` +
        `failed), ${totals.duplicated} duplicated and ${totals.faulty} faulty result lines.`,
    );
  }
  return found;
}

/** Formats a share: 0.314 -> `31.4 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
