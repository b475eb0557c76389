import type { Epoch, GroupId, JobId, RoundId, RoundStatus, TailPolicy } from '@broomwagon/contracts';
import type { PromptRecord } from '../prompts/prompt-record';
import type { StepReport } from './step-report';
import type { HeldStep } from '../results/held-step';
import type { ResultSink } from '../results/result-line';
import type { GroupSettings } from './group-submitter';
import type { Reconciled } from './reconcile';

/** What a trainer trains on, and how. */
export interface TrainerLoopSettings extends GroupSettings {
  job: JobId;
  /** The data set, in order; every prompt is trained exactly once. */
  prompts: readonly PromptRecord[];
  groupsPerStep: number;
  policy: TailPolicy;
  /**
   * Continues a job whose trainer is gone (or fences it, if it is not): what that one has trained. Nothing of it is
   * trained again, and Redis gets back what it has lost of it. Absent: a new job.
   */
  held?: readonly HeldStep[];
  /** The results are waited for this long between two looks at the status, milliseconds. Default 1,000. */
  lookMs?: number;
  signal?: AbortSignal;
}

/** Measures the engines over a step. */
export interface EngineMeter {
  begin(): Promise<void>;
  /** Called at each look at the round. */
  observe?(): Promise<void>;
  /** Since `begin`; null if it is unknown. */
  end(): Promise<Pick<StepReport, 'idleShare' | 'engineSeconds'>>;
}

/** What a trainer is connected to besides the protocol. */
export interface TrainerLoopHooks {
  sink: ResultSink;
  meter?: EngineMeter;
  /**
   * The engines get the weights of so many steps; before each new round. Returns their version, if that is another.
   * @param trainer for whom; absent before the first round
   */
  setWeightVersion?(version: number, trainer?: { job: JobId; trainerEpoch: Epoch }): Promise<number | void>;
  /** At each look at the open round. */
  onStatus?(status: RoundStatus): void;
  /** Redis had lost what was done last; the trainer has reported what it has trained. */
  onReconciled?(lost: Pick<Reconciled, 'lostSteps' | 'lostGroups'>): void;
  /** Prompts or tokens of these groups are not in the payload store: they are submitted again. */
  onMissing?(groupIds: readonly GroupId[]): void;
  /** An operator has cancelled this round: what was requeued comes back, what was dropped is missing. */
  onCancelled?(roundId: RoundId): void;
  /** After each step, once the cut of its round is confirmed and counted. */
  onStep?(step: StepReport): void;
}
