import type {
  AbortScope,
  RewardOutcome,
  RoundKind,
  RoundRules,
  RoundState,
  TailChoice,
  TailPolicy,
  WasteReason,
} from '@broomwagon/contracts';
import type { PlanProgress, PromptLengths, ResolvedPolicy, TailControl } from '@broomwagon/policies';

export type RequestState =
  'pending' | 'claimed' | 'running' | 'cutting' | 'unfinished' | 'finished' | 'trained' | 'failed' | 'dropped';
export type GroupState = 'live' | 'leaving' | 'accepted' | 'unfinished' | 'failed' | 'dropped' | 'trained' | 'excluded';

/** Tokens of one attempt under one weight version. */
export interface ModelSegment {
  attempt: number;
  weightVersion: number;
  tokens: number;
}
/** A worker, or whatever runs requests: compared by identity. */
export type Holder = string | number;

export interface ModelRequest {
  readonly group: ModelGroup;
  readonly index: number;
  state: RequestState;
  /** Fence: messages about another attempt are refused. */
  attempt: number;
  /** Failures in a row without a further token between them. */
  failures: number;
  /** Tokens of the request at the first failure in the row. */
  tokensAtFailure?: number;
  /** Attempts that were returned unfinished for reasons other than failures. */
  returns: number;
  holder?: Holder;
  /** Whether the attempt has started on a server. */
  started: boolean;
  segments: ModelSegment[];
  /** Sum over the segments. */
  tokens: number;
  savedSegment?: ModelSegment;
  /** Reason for which the sample is never trained, though its group may continue. */
  stopped?: 'aborted' | 'timeout';
  /** Number of the request's current place in the pending queue: each new place has a new number. */
  ticket: number;
}

export interface ModelGroup {
  readonly groupId: string;
  readonly domain?: string;
  /** Samples the group needs; `requests` may be more. When samples are lost for good, fewer, down to `minSamples`. */
  samples: number;
  readonly minSamples: number;
  readonly requests: ModelRequest[];
  readonly firstStep: number;
  state: GroupState;
  round: ModelRound;
  /** Requests that are pending, claimed, running or cutting. */
  live: number;
  finished: number;
  /** Kept tokens of all requests. */
  tokens: number;
  /** The longest sample so far, tokens. */
  longest: number;
  /** Weight version of the oldest kept token. */
  oldestVersion?: number;
  cuts: number;
  /** Whether a started request was cut since the group was taken. */
  wasCut: boolean;
  /** Whether the round took the group from the long-tail queue. */
  taken: boolean;
  /** Whether the round keeps a place for the group. */
  pinned: boolean;
  /** Whether the group is finished and has no place yet. */
  held: boolean;
  /** Time of acceptance, milliseconds since the round was opened. */
  finishedMs?: number;
  /** Position in the long-tail queue, in the order of first cuts. */
  place: number;
  /** Step from which the group must be taken. */
  pinStep: number;
  /** Arrival number of the group's first request, if that is a probe. */
  probedAt?: number;
  /** Entry of the group in the length history. */
  length?: { bin: number; kind: 'finished' | 'censored' };
}

/** A round to open: its plan and its policy. */
export interface ModelOpening {
  step: number;
  kind: RoundKind;
  neededGroups: number;
  newGroups: number;
  takeGroups: number;
  policy: TailPolicy;
  weightVersion: number;
  /** The ledger of the job, for `auto`; as in the plan. */
  measured?: PlanProgress['measured'];
  /** The policy that `auto` has chosen, if it is known already. */
  resolved?: ResolvedPolicy;
  /** Whether a timeout drops the sample or its group. Default: `group`. */
  abortScope?: AbortScope;
}

export interface ModelRound extends ModelOpening {
  rules: RoundRules;
  choice?: TailChoice;
  /** Control state for the next round, if this round is closed. */
  control?: TailControl;
  state: RoundState;
  settled: boolean;
  completedReason?: 'accepted' | 'deadline' | 'accepted-fewer';
  openedAtMs: number;
  completedAtMs?: number;
  takenGroups: number;
  submittedGroups: number;
  /** Live groups in the order of their arrival, the held ones included. */
  readonly live: Set<ModelGroup>;
  readonly accepted: ModelGroup[];
  readonly failed: ModelGroup[];
  /** Outcomes of accepted groups whose rewards are known; empty with `equalRewards` `keep`. */
  readonly outcomes: Map<ModelGroup, RewardOutcome>;
  replacedGroups: number;
  maxReplacedGroups: number;
  /** Finished groups without a place, in order. */
  readonly held: Set<ModelGroup>;
  droppedGroups: number;
  /** Places kept for pinned groups. */
  reserved: number;
  /** Free places by domain, '' for domains without a quota; only with quotas. */
  places?: Map<string, number>;
  spare: number;
  /** Groups of a domain that may still take its places. */
  liveOfDomain: Map<string, number>;
  /** Tokens that taken groups may still bring; Infinity = any. */
  keepTokens: number;
  /** Requests that workers have. */
  inFlight: number;
  requestsDone: number;
  requestsCut: number;
  groupsRequeued: number;
  wasted: Partial<Record<WasteReason, number>>;
  acceptedTokens: number;
  longestTokens: number;
  bulkGroups: number;
  bulkMs: number;
  tailGroups: number;
  tailMs: number;
}

/** An attempt whose holder must be told to stop; the holder confirms with `fail`. */
export interface ModelAbort {
  request: ModelRequest;
  attempt: number;
}
/** A new group; the model creates its requests. */
export interface ModelSubmission {
  groupId: string;
  samples: number;
  /** Default: `samples`. */
  minSamples?: number;
  domain?: string;
  /** Token budget of the samples, for orders of dispatch by length. Default: 0. */
  maxTokens?: number;
  /** Lengths of earlier samples of the prompt, if known. */
  lengths?: PromptLengths;
}
