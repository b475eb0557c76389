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

/** Progress of a job, from which the next round is planned. */
export interface JobProgress {
  stepsTrained: number;
  longtailGroups: number;
  settlingGroups: number;
  /** Groups in the long-tail queue that are finished, and must be taken in the next step. */
  finishedGroups: number;
  pinnedGroups: number;
  /** State that an adaptive policy stored; see TailControl of libs/policies. */
  control?: object;
  /** Records of closed rounds, oldest first; see StepRecord of libs/policies. Empty unless requested. */
  history: object[];
  /** The round that is not closed, if any. */
  openRoundId?: RoundId;
  /** The round that was opened last, if any. */
  lastRoundId?: RoundId;
  stamp: string;
}

export type RoundName = Pick<OpenRoundRequest, 'job' | 'roundId'>;

export interface OpenRoundArgs extends OpenRoundRequest {
  orphanAfterMs: number;
  /** Rules that follow from the policy. */
  rules: RoundRules;
  /** Maximum groups with equal rewards that the round replaces. */
  maxReplacedGroups?: number;
  /** Maximum tokens that groups of the queue may bring along; absent: any. */
  keepTokens?: number;
  /** Places of domains, with '' for all domains without a quota; absent without quotas. */
  places?: { domain: string; places: number }[];
  /** Choice of an adaptive policy, and the state `control` that it stores for the next round. */
  choice?: TailChoice;
  control?: object;
  /** W3C trace context of the call, which the claims of the round get. */
  traceparent?: string;
}
/** Answer to a page of an opening. Another page is needed while the state is `opening`. */
export type TakeAnswer = Pick<OpenRoundReply, 'state' | 'takenGroups'>;

/** A group as it is stored, with its prompt by reference. */
export interface NewGroup extends Omit<GroupSubmission, 'prompt' | 'sampling' | 'promptId'> {
  /** Digest of the submission. The same groupId with another digest is a duplicate. */
  digest: string;
  promptRef: string;
  /** Sampling parameters, as JSON. */
  sampling: string;
  /** Hash of the prompt of the group in the prompt memory. */
  promptHash?: PromptHash;
  /**
   * Order of the requests of the group in the pending queue (Dispatch of libs/policies); absent: the order of arrival.
   */
  dispatch?: { expectedTokens: number; probes: boolean };
}
/** Fields of a group that the check of a submission needs. */
export type NamedGroup = Pick<NewGroup, 'groupId' | 'digest' | 'samples' | 'maxTokens' | 'promptHash'> & {
  promptRef?: string;
};
export type SubmitArgs = Omit<SubmitGroupsRequest, 'groups'>;
/** Room that the payloads of the job leave for samples that are not generated yet. */
export interface SubmitRoom {
  freeBytes: number;
  quotaBytes: number;
  /** Bytes reserved for each token that a sample may have. */
  bytesPerToken: number;
}
export interface SubmitAnswer extends SubmitGroupsReply {
  /** The round was completed before, so these groups must be cut. */
  completed: boolean;
  /** Number of launched samples / number of samples of a group in this round. */
  launchFactor: number;
}
export interface CheckedSubmission extends SubmitAnswer {
  /** Groups that are not stored yet. */
  fresh: GroupId[];
  dispatchOrder: DispatchOrder;
  /** Lengths of the prompts of the groups in the prompt memory; empty for the order of arrival. */
  known: RememberedPrompt[];
}

export interface ResultsArgs extends Omit<RoundResultsRequest, 'waitMs'> {
  limit: number;
  /** Maximum size: the page ends with the sample that reaches it. */
  maxBytes?: number;
}
export type ResultsPage = Omit<RoundResultsReply, 'ledger'>;

export interface RewardArgs extends Omit<RewardGroupsRequest, 'groups'> {
  /** Groups with the number of their rewards, and whether the rewards are all equal. */
  groups: readonly { groupId: GroupId; rewards: number; isEqual: boolean }[];
  remainingGroups: number;
  /** Field of the request with the groups, for errors. */
  field: 'groups' | 'rewards';
}
export interface RewardAnswer extends RewardGroupsReply {
  /** The round has all its groups, so all other groups must be cut. */
  completed: boolean;
}
export type CloseArgs = Omit<CloseRoundRequest, 'rewards' | 'remainingGroups'>;

export interface CutPage {
  /** Attempts whose holders must be told to stop. */
  aborts: AttemptFence[];
  /** Where the next page starts; absent at the end. */
  cursor?: number;
  settled: boolean;
}

export interface GiveBackPage {
  aborts: AttemptFence[];
  more: boolean;
}

/** Trained groups that Redis may have lost, from the trainer. About 128 requests in all. */
export interface ReconcileArgs extends Omit<ReconcileJobRequest, 'groups' | 'groupIds'> {
  groups: readonly TrainedGroup[];
  isLast: boolean;
  groupIds: readonly GroupId[];
}
export interface ReconcileAnswer extends ReconcileJobReply {
  cancelledRoundId?: RoundId;
  aborts: AttemptFence[];
}

/** Work of the sweep in a pool. */
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
  /** Number of index entries found so far without a record. */
  lostEntries: number;
  /** Number of impossible counts found so far, such as a count below zero. */
  miscounts: number;
  /** Jobs that must be counted again. */
  miscounted: JobId[];
  /** Number of snapshots that must be deleted. */
  oldSnapshots: number;
  /** Number of dropped groups that must be deleted. */
  dropped: number;
  /** Number of moves whose holders have not confirmed them. */
  moving: number;
  /** A change of weights is under way. */
  weightSync: boolean;
  stamp: string;
  /** Generation of the pool, if the counts of the jobs were not checked since it started. */
  uncheckedGeneration?: string;
  /** The generation of the pool was renewed just now: Redis was restarted or set back. */
  renewed?: boolean;
}
