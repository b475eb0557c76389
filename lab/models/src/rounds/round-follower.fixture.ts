import type { RewardOutcome } from '@broomwagon/contracts';
import type { PlanProgress, PromptLengths } from '@broomwagon/policies';
import type { RoundModel } from './round-model';
import type {
  ModelAbort,
  ModelGroup,
  ModelOpening,
  ModelRequest,
  ModelRound,
  ModelSegment,
  ModelSubmission,
} from './round-model.types';

export const WORKERS = ['w0', 'w1', 'w2'];

/** An attempt that a worker has got, and may speak of at any time afterwards. */
export interface GivenAttempt {
  request: ModelRequest;
  number: number;
  workerId: string;
}
export type PlannedOpening = ModelOpening & { planId: string };
export interface FailureKind {
  countsAsFailure?: boolean;
  retryable?: boolean;
  timedOut?: boolean;
}
/** What becomes of a request, and the attempts that are to stop ({@link nameOf}, sorted). */
export interface Ended {
  state: string;
  aborts: string[];
}

/** Does elsewhere what the world does with the model, and returns the result. */
export interface RoundFollower {
  /** The time of the last act, which the model takes over. */
  nowMs(): Promise<number>;
  /** Both sides would plan the same. */
  compareProgress(expected: PlanProgress): Promise<void>;
  open(opening: PlannedOpening, progress: PlanProgress): Promise<string>;
  /** What the prompt memory knows of a group that is to be submitted. */
  lengthsOf(groupId: string): Promise<PromptLengths | undefined>;
  submit(round: ModelRound, groups: readonly ModelSubmission[]): Promise<void>;
  claim(max: number, workerId: string): Promise<string[]>;
  save(attempt: GivenAttempt, made: ModelSegment): Promise<string>;
  complete(attempt: GivenAttempt, made: ModelSegment): Promise<Ended>;
  fail(attempt: GivenAttempt, made: ModelSegment, kind: FailureKind): Promise<Ended>;
  expireWorker(workerId: string): Promise<void>;
  dropGroup(group: ModelGroup): Promise<string[]>;
  stopSample(request: ModelRequest): Promise<string[]>;
  /** State of the move, and the attempts that are to stop. */
  move(request: ModelRequest): Promise<Ended>;
  /** How many moves were given up. */
  expireMoves(): Promise<number>;
  /** A change of weights that stops these attempts, all that are held. Returns the attempts that were told. */
  changeWeights(held: readonly GivenAttempt[]): Promise<string[]>;
  /** With a segment the holder hands the sample in, else an operator takes it. */
  requeue(attempt: GivenAttempt, last: ModelSegment | undefined): Promise<Ended>;
  /** Whether the deadline of the round had come. */
  expireRound(): Promise<boolean>;
  /** What these rounds, all there were, and groups that have left one have live. */
  cut(rounds: readonly ModelRound[]): Promise<string[]>;
  reward(group: ModelGroup, isEqual: boolean, remainingGroups: number): Promise<RewardOutcome>;
  close(round: ModelRound): Promise<void>;
  fold(rounds: readonly ModelRound[]): Promise<void>;
  reconcile(step: number, groups: readonly ModelSubmission[]): Promise<{ counted: number; aborts: string[] }>;
  /** `complete`, or why it was refused. */
  snapshot(tag: string): Promise<string>;
  /** `restored`, or why it was refused. */
  restore(tag: string): Promise<string>;
  /** Everything that both sides hold is the same. */
  compare(model: RoundModel, groups: readonly ModelGroup[], rounds: readonly ModelRound[]): Promise<void>;
}

export const nameOf = ({ group, index }: ModelRequest, attempt: number): string =>
  `${group.groupId}/${index} ${attempt}`;
export const namesOf = (aborts: readonly ModelAbort[]): string[] =>
  aborts.map(({ request, attempt }) => nameOf(request, attempt)).sort();
/** Closed or cancelled: its failed groups, and what it holds of places, go when it is folded. */
export const isOver = ({ state }: { state: string }): boolean => state === 'closed' || state === 'cancelled';
/** The scripts know nothing of it any more. */
export const isForgotten = ({ state, round }: ModelGroup): boolean =>
  state === 'trained' || state === 'excluded' || (state === 'failed' && isOver(round));
