import type { RoundKind, RoundStatus } from '@broomwagon/contracts';
import { generationSeconds, tailSeconds, type DoneSample } from './tail-seconds';

/** Measurements of one training step. */
export interface StepReport {
  step: number;
  roundId: string;
  kind: RoundKind;
  groupsAccepted: number;
  /** Samples finished in this round. */
  requestsDone: number;
  /** Requests that had been started and were cut. */
  requestsCut: number;
  /** Groups that went to the long-tail queue. */
  groupsRequeued: number;
  /** Time from the plan of the round to its acknowledgement, seconds. */
  wallSeconds: number;
  /** Share of the time in which the engines were idle; null when it could not be measured. */
  idleShare: number | null;
  /** Time of the last tenth of the requests of the round, seconds. */
  tailSeconds: number;
  /** `tailSeconds` / `wallSeconds`, 0 to 1. */
  tailShare: number;
  /** Mean time from the plan of the round to the end of a sample that it finished, seconds. */
  meanGenerationSeconds: number;
  /** Time from the plan of the round to the end of its last sample, seconds. */
  slowestGenerationSeconds: number;
  /** Time that the busiest engine worked, by its own clock, seconds; null when it could not be measured. */
  engineSeconds: number | null;
}

/**
 * Builds the report of a step whose results are written now.
 * @param status last status of the round
 * @param times start and completion of the round by `performance.now()`, and the work of the engines meanwhile
 */
export function measureStep(
  { step, roundId, kind }: Pick<StepReport, 'step' | 'roundId' | 'kind'>,
  status: RoundStatus,
  doneSamples: readonly DoneSample[],
  {
    startedMs,
    completedMs,
    engines,
  }: { startedMs: number; completedMs: number; engines: Pick<StepReport, 'idleShare' | 'engineSeconds'> },
): StepReport {
  const wallSeconds = (performance.now() - startedMs) / 1_000;
  const lastSeconds = tailSeconds(doneSamples, completedMs);
  const { mean, slowest } = generationSeconds(doneSamples, startedMs);
  return {
    step,
    roundId,
    kind,
    groupsAccepted: status.acceptedGroups,
    requestsDone: status.requestsDone,
    requestsCut: status.requestsCut,
    groupsRequeued: status.groupsRequeued,
    wallSeconds,
    tailSeconds: lastSeconds,
    tailShare: lastSeconds / wallSeconds,
    meanGenerationSeconds: mean,
    slowestGenerationSeconds: slowest,
    ...engines,
  };
}
