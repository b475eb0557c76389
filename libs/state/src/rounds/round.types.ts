import type {
  AbortScope,
  Epoch,
  GroupId,
  GroupResult,
  JobId,
  OpenRoundReply,
  ReadGroup,
  ReconcileJobReply,
  ReconcileJobRequest,
  RoundId,
  RoundKind,
  RoundRules,
  RoundState,
  TailChoice,
  TailPolicy,
  TrainedGroup,
} from '@broomwagon/contracts';
import type { AttemptFence } from '../requests/request.types';

/** What the plan of the next round is made from. */
export interface JobSnapshot {
  stepsTrained: number;
  longtailGroups: number;
  settlingGroups: number;
  /** Of the queue: finished, and to be taken in the next step. */
  finishedGroups: number;
  pinnedGroups: number;
  /** What an adaptive policy kept; see TailControl of libs/policies. */
  control?: object;
  /** Of closed rounds, oldest first; see StepRecord of libs/policies. Empty unless it was asked for. */
  history: object[];
  /** The round that is not closed, if any. */
  openRoundId?: RoundId;
  stamp: string;
}

/** A round to open; see OpenRoundRequest. */
export interface OpenRoundArgs {
  job: JobId;
  roundId: RoundId;
  planId: string;
  step: number;
  kind: RoundKind;
  neededGroups: number;
  takeGroups: number;
  newGroups: number;
  policy: TailPolicy;
  weightVersion?: number;
  orphanAfterMs: number;
  /** Default: `group`. */
  abortScope?: AbortScope;
  trainerEpoch?: Epoch;
  stamp?: string;
  /** What follows from the policy. */
  rules: RoundRules;
  /** Tokens that groups of the queue may bring; absent: any. */
  keepTokens?: number;
  /** Places of domains, '' for all that have no quota; absent without quotas. */
  places?: { domain: string; places: number }[];
  /** What an adaptive policy chose, and what it keeps for the next round. */
  choice?: TailChoice;
  control?: object;
}
export type OpenRoundAnswer = OpenRoundReply;

export interface TakeAnswer {
  /** Another page is needed while it is `opening`. */
  state: RoundState;
  takenGroups: number;
}

/** A group as it is stored: its prompt by reference. */
export interface NewGroup {
  groupId: GroupId;
  /** Of the submission: the same group with another one is a duplicate. */
  digest: string;
  samples: number;
  maxTokens: number;
  promptRef: string;
  /** JSON. */
  sampling: string;
  domain?: string;
  /** Default: `samples`. */
  minSamples?: number;
  /** Of one attempt, milliseconds; absent: any. */
  timeoutMs?: number;
  /** Its name in the prompt memory. */
  promptHash?: string;
}
export interface SubmitArgs {
  job: JobId;
  roundId: RoundId;
  trainerEpoch: Epoch;
  stamp?: string;
}
/** What the payloads of the job leave for samples that are not made yet. */
export interface SubmitRoom {
  freeBytes: number;
  quotaBytes: number;
  /** Reserved for each token a sample may have. */
  bytesPerToken: number;
}
export interface SubmitAnswer {
  added: number;
  repeated: number;
  roundGroups: number;
  /** The round was completed before: these groups are to be cut. */
  completed: boolean;
  /** Launched samples / samples of a group in this round. */
  launchFactor: number;
  stamp: string;
}

export interface ResultsArgs {
  job: JobId;
  roundId: RoundId;
  /** Of the page before; absent: from the beginning. */
  cursor?: string;
  limit: number;
  /** The page ends with the sample that makes it so many. */
  maxBytes?: number;
  trainerEpoch?: Epoch;
  stamp?: string;
}
export interface ResultsPage {
  state: RoundState;
  groups: GroupResult[];
  cursor: string;
  complete: boolean;
  stamp: string;
}
/** A round to close; see CloseRoundRequest. */
export interface CloseRoundArgs extends RoundName {
  trainerEpoch: Epoch;
  stamp?: string;
  cursor: string;
  groups?: ReadGroup[];
}

export interface CutPage {
  /** Attempts whose holders are to be told. */
  aborts: AttemptFence[];
  /** Where the next page starts; absent at the end. */
  cursor?: number;
  settled: boolean;
}

/** A round to cancel; see CancelRoundRequest. */
export interface CancelRoundArgs extends RoundName {
  trainerEpoch: Epoch;
  stamp?: string;
  mode: 'requeue' | 'drop';
  reason: string;
}
export interface GiveBackPage {
  aborts: AttemptFence[];
  more: boolean;
}

/** What a trainer has that Redis may have lost; see ReconcileJobRequest. About 128 requests in all. */
export interface ReconcileArgs {
  job: JobId;
  trainerEpoch?: ReconcileJobRequest['trainerEpoch'];
  /** Without `trainerEpoch`. */
  takeoverId?: string;
  stamp?: string;
  step?: number;
  groups: readonly TrainedGroup[];
  isLast: boolean;
  groupIds: readonly GroupId[];
}
export interface ReconcileAnswer extends ReconcileJobReply {
  cancelledRoundId?: RoundId;
  aborts: AttemptFence[];
}

export interface FoldPage {
  done: boolean;
  /** The next group has a surplus sample that is not confirmed: come again later. */
  waiting: boolean;
}

/** A round by name. */
export interface RoundName {
  job: JobId;
  roundId: RoundId;
}
/** What there is to sweep in a pool. */
export interface DueWork {
  rounds: (RoundName & { state: RoundState })[];
  /** Worker epochs whose attempts must be returned. */
  expiredEpochs: number;
  claimWaiters: number;
  /** Rounds whose deadline has come. */
  deadlines: number;
  /** Aborts whose requests are still being selected. */
  aborts: string[];
  /** Groups and leases whose abort is not confirmed. */
  aborting: number;
  /** Groups on their way from an open round to the long-tail queue. */
  leaving: number;
  /** Requests ever that an index named and that were not there. */
  lostEntries: number;
  /** Counts ever that were found to be impossible, such as one below zero. */
  miscounts: number;
  /** Jobs that are to be counted anew. */
  miscounted: JobId[];
  /** Checkpoints that are to be deleted. */
  oldCheckpoints: number;
  /** Dropped groups that are to be forgotten. */
  dropped: number;
  /** Moves whose holders have not confirmed them. */
  moving: number;
  /** The weights change just now. */
  weightSync: boolean;
  stamp: string;
  /** The generation, when the counts of the jobs were not checked since it began. */
  uncheckedGeneration?: string;
  /** The generation of the pool was renewed just now: Redis was restarted or set back. */
  renewed?: boolean;
}
