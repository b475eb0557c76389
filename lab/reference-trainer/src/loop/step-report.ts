import type { RoundKind } from '@broomwagon/contracts';

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
