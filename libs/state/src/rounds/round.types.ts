import type {
  CloseRoundRequest,
  DispatchOrder,
  GroupId,
  GroupSubmission,
  JobId,
  OpenRoundReply,
  OpenRoundRequest,
  ReconcileJobReply,
  ReconcileJobRequest,
  RewardGroupsReply,
  RewardGroupsRequest,
  RoundId,
  RoundResultsReply,
  RoundResultsRequest,
  RoundRules,
  RoundState,
  SubmitGroupsReply,
  SubmitGroupsRequest,
  TailChoice,
  TrainedGroup,
} from '@broomwagon/contracts';
import type { PromptHash, RememberedPrompt } from '../ledger/prompt-memory.store';
import type { AttemptFence } from '../requests/request.store';

/** What the plan of the next round is made from. */
export interface JobProgress {
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
  /** The round that was opened last, if any. */
  lastRoundId?: RoundId;
  stamp: string;
}

/** A round by name. */
export type RoundName = Pick<OpenRoundRequest, 'job' | 'roundId'>;

export interface OpenRoundArgs extends OpenRoundRequest {
  orphanAfterMs: number;
  /** What follows from the policy. */
  rules: RoundRules;
  /** Groups with equal rewards that the round replaces at most. */
  maxReplacedGroups?: number;
  /** Tokens that groups of the queue may bring; absent: any. */
  keepTokens?: number;
  /** Places of domains, '' for all that have no quota; absent without quotas. */
  places?: { domain: string; places: number }[];
  /** What an adaptive policy chose, and what it keeps for the next round. */
  choice?: TailChoice;
  control?: object;
  /** W3C trace context of the call, which the claims of the round get. */
  traceparent?: string;
}
/** Another page is needed while it is `opening`. */
export type TakeAnswer = Pick<OpenRoundReply, 'state' | 'takenGroups'>;

/** A group as it is stored: its prompt by reference. */
export interface NewGroup extends Omit<GroupSubmission, 'prompt' | 'sampling' | 'promptId'> {
  /** Of the submission: the same group with another one is a duplicate. */
  digest: string;
  promptRef: string;
  /** JSON. */
  sampling: string;
  /** Its name in the prompt memory. */
  promptHash?: PromptHash;
  /** Where its requests go in the pending queue (Dispatch of libs/policies); absent: in the order of arrival. */
  dispatch?: { expectedTokens: number; probes: boolean };
}
/** What the check of a submission needs of a group. */
export type NamedGroup = Pick<NewGroup, 'groupId' | 'digest' | 'samples' | 'maxTokens' | 'promptHash'> & {
  promptRef?: string;
};
export type SubmitArgs = Omit<SubmitGroupsRequest, 'groups'>;
/** What the payloads of the job leave for samples that are not made yet. */
export interface SubmitRoom {
  freeBytes: number;
  quotaBytes: number;
  /** Reserved for each token a sample may have. */
  bytesPerToken: number;
}
export interface SubmitAnswer extends SubmitGroupsReply {
  /** The round was completed before: these groups are to be cut. */
  completed: boolean;
  /** Launched samples / samples of a group in this round. */
  launchFactor: number;
}
export interface CheckedSubmission extends SubmitAnswer {
  /** Groups that are not there yet. */
  fresh: GroupId[];
  dispatchOrder: DispatchOrder;
  /** What the prompt memory has of their prompts; empty in the order of arrival. */
  known: RememberedPrompt[];
}

export interface ResultsArgs extends Omit<RoundResultsRequest, 'waitMs'> {
  limit: number;
  /** The page ends with the sample that makes it so many. */
  maxBytes?: number;
}
export type ResultsPage = Omit<RoundResultsReply, 'ledger'>;

export interface RewardArgs extends Omit<RewardGroupsRequest, 'groups'> {
  /** How many rewards each has, and whether they are all equal. */
  groups: readonly { groupId: GroupId; rewards: number; isEqual: boolean }[];
  remainingGroups: number;
  /** Of the request that has the groups, for errors. */
  field: 'groups' | 'rewards';
}
export interface RewardAnswer extends RewardGroupsReply {
  /** The round has all its groups: the others are to be cut. */
  completed: boolean;
}
export type CloseArgs = Omit<CloseRoundRequest, 'rewards' | 'remainingGroups'>;

export interface CutPage {
  /** Attempts whose holders are to be told. */
  aborts: AttemptFence[];
  /** Where the next page starts; absent at the end. */
  cursor?: number;
  settled: boolean;
}

export interface GiveBackPage {
  aborts: AttemptFence[];
  more: boolean;
}

/** What a trainer has that Redis may have lost. About 128 requests in all. */
export interface ReconcileArgs extends Omit<ReconcileJobRequest, 'groups' | 'groupIds'> {
  groups: readonly TrainedGroup[];
  isLast: boolean;
  groupIds: readonly GroupId[];
}
export interface ReconcileAnswer extends ReconcileJobReply {
  cancelledRoundId?: RoundId;
  aborts: AttemptFence[];
}

/** What there is to sweep in a pool. */
export interface DueWork {
  rounds: (RoundName & { state: RoundState })[];
  /** Worker epochs whose attempts must be returned. */
  expiredEpochs: number;
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
  /** Jobs that are to be counted again. */
  miscounted: JobId[];
  /** Snapshots that are to be deleted. */
  oldSnapshots: number;
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
