import type { Epoch, GroupId, JobId, RoundId, RoundStatus, TailPolicy } from '@broomwagon/contracts';
import type { PromptRecord } from '../prompts/prompt-record';
import type { StepReport } from './step-report';
import type { HeldStep } from '../results/held-step';
import type { ResultSink } from '../results/result-line';
import type { GroupSettings } from './group-submitter';
import type { LostGroup } from './lost-groups';
import type { Reconciled } from './reconcile';

/** Settings of a trainer: its data set, and how it trains. */
export interface TrainerLoopSettings extends GroupSettings {
  job: JobId;
  /** The data set, in order; every prompt is trained exactly once. */
  prompts: readonly PromptRecord[];
  groupsPerStep: number;
  policy: TailPolicy;
  /**
   * Steps that an earlier trainer of the job has trained; if that trainer still runs, it is fenced. Their groups are
   * not trained again, and Redis gets back the steps that it has lost. Absent: a new job.
   */
  held?: readonly HeldStep[];
  /** Wait for results between two reads of the status, milliseconds. Default 1,000. */
  lookMs?: number;
  signal?: AbortSignal;
}

/** Measures the engines over a step. */
export interface EngineMeter {
  begin(): Promise<void>;
  /** Called at each read of the status. */
  observe?(): Promise<void>;
  /** Measurements since `begin`; null if unknown. */
  end(): Promise<Pick<StepReport, 'idleShare' | 'engineSeconds'>>;
}

/** Parts that a trainer uses besides the protocol. */
export interface TrainerLoopHooks {
  sink: ResultSink;
  meter?: EngineMeter;
  /**
   * Gives the engines the weights of this many steps; called before each new round. Returns the version of these
   * weights, if the pool counts another one.
   * @param trainer trainer of the job; absent before the first round
   */
  setWeightVersion?(version: number, trainer?: { job: JobId; trainerEpoch: Epoch }): Promise<number | void>;
  /** Redis was set back, and may have lost parts of the last change of weights: repeats the change. */
  repeatWeights?(job: JobId, trainerEpoch?: Epoch): Promise<void>;
  /** Called at each read of the status of the open round. */
  onStatus?(status: RoundStatus): void;
  /** Redis had lost the last changes; the trainer has reported the groups that it has trained. */
  onReconciled?(lost: Pick<Reconciled, 'lostSteps' | 'lostGroups'>): void;
  /** Prompts or tokens of these groups are not in the payload store: they are submitted again. */
  onMissing?(groupIds: readonly GroupId[]): void;
  /** An operator has cancelled this round: requeued groups come back, dropped groups are missing. */
  onCancelled?(roundId: RoundId): void;
  /** These groups have ended without training: failed, or dropped by an abort or a timeout. */
  onLost?(groups: readonly LostGroup[]): void;
  /** Called after each step, once the cut of its round is confirmed and counted. */
  onStep?(step: StepReport): void;
}
