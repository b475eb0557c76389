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

/** An attempt that a worker was given, and may send messages about at any later time. */
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
/** State of a request after an act, and names ({@link formatAttemptName}, sorted) of the attempts that must stop. */
export interface Ended {
  state: string;
  aborts: string[];
}

/** Applies the acts of the world to another implementation than the model, and returns the results. */
export interface RoundFollower {
  /** Time of the last act; the model uses the same time. */
  nowMs(): Promise<number>;
  /** Checks that both sides would plan the same round. */
  compareProgress(expected: PlanProgress): Promise<void>;
  open(opening: PlannedOpening, progress: PlanProgress): Promise<string>;
  /** Lengths in the prompt memory for a group that is about to be submitted. */
  readLengths(groupId: string): Promise<PromptLengths | undefined>;
  submit(round: ModelRound, groups: readonly ModelSubmission[]): Promise<void>;
  claim(max: number, workerId: string): Promise<string[]>;
  save(attempt: GivenAttempt, made: ModelSegment): Promise<string>;
  /** Reports finished samples of one worker by one message. */
  complete(attempts: readonly GivenAttempt[], made: readonly ModelSegment[]): Promise<Ended[]>;
  fail(attempt: GivenAttempt, made: ModelSegment, kind: FailureKind): Promise<Ended>;
  expireWorker(workerId: string): Promise<void>;
  dropGroup(group: ModelGroup): Promise<string[]>;
  stopSample(request: ModelRequest): Promise<string[]>;
  /** Returns the state of the move, and the attempts that must stop. */
  move(request: ModelRequest): Promise<Ended>;
  /** Returns the number of moves that were given up. */
  expireMoves(): Promise<number>;
  /** Changes the weights, which stops these attempts: all that are held. Returns the attempts that got a command. */
  changeWeights(held: readonly GivenAttempt[]): Promise<string[]>;
  /** Requeues a sample: with a segment its holder hands it in, else an operator takes it. */
  requeue(attempt: GivenAttempt, last: ModelSegment | undefined): Promise<Ended>;
  /** Returns whether the deadline of the round had passed. */
  expireRound(): Promise<boolean>;
  /** Cuts live requests of all rounds so far, and of groups that have left a round. Returns the attempts to stop. */
  cut(rounds: readonly ModelRound[]): Promise<string[]>;
  reward(group: ModelGroup, isEqual: boolean, remainingGroups: number): Promise<RewardOutcome>;
  close(round: ModelRound): Promise<void>;
  fold(rounds: readonly ModelRound[]): Promise<void>;
  reconcile(step: number, groups: readonly ModelSubmission[]): Promise<{ counted: number; aborts: string[] }>;
  /** Returns `complete`, or the reason for the refusal. */
  snapshot(tag: string): Promise<string>;
  /** Returns `restored`, or the reason for the refusal. */
  restore(tag: string): Promise<string>;
  /** Checks that both sides have the same state. */
  compare(model: RoundModel, groups: readonly ModelGroup[], rounds: readonly ModelRound[]): Promise<void>;
}

export const formatAttemptName = ({ group, index }: ModelRequest, attempt: number): string =>
  `${group.groupId}/${index} ${attempt}`;
export const listAttemptNames = (aborts: readonly ModelAbort[]): string[] =>
  aborts.map(({ request, attempt }) => formatAttemptName(request, attempt)).sort();
/** Whether the round is closed or cancelled: its failed groups and its places are deleted when it is folded. */
export const isOver = ({ state }: { state: string }): boolean => state === 'closed' || state === 'cancelled';
/** Whether the scripts have deleted the group. */
export const isForgotten = ({ state, round }: ModelGroup): boolean =>
  state === 'trained' || state === 'excluded' || (state === 'failed' && isOver(round));
