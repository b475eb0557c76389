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
  /** Fence: what is said about another attempt is refused. */
  attempt: number;
  failures: number;
  /** Attempts that came back unfinished for other reasons. */
  returns: number;
  holder?: Holder;
  /** The attempt has begun on a server. */
  started: boolean;
  segments: ModelSegment[];
  /** Of the segments. */
  tokens: number;
  savedSegment?: ModelSegment;
  /** It is never trained, though its group may continue. */
  stopped?: 'aborted' | 'timeout';
  /** Of its place in the pending queue: each place has another. */
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
  /** Something that had begun was cut since the group was taken. */
  wasCut: boolean;
  /** It was taken from the long-tail queue by its round. */
  taken: boolean;
  /** Its round keeps a place for it. */
  pinned: boolean;
  /** Finished, and no place for it yet. */
  held: boolean;
  /** When it was accepted, milliseconds since its round was opened. */
  finishedMs?: number;
  /** Order in the long-tail queue: of its first cut. */
  place: number;
  /** Step from which it must be taken. */
  pinStep: number;
  /** Arrival number of its first request, if that is a probe. */
  probedAt?: number;
  /** What the length history holds of it. */
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
  /** What a timeout drops. Default: `group`. */
  abortScope?: AbortScope;
}

export interface ModelRound extends ModelOpening {
  rules: RoundRules;
  choice?: TailChoice;
  /** For the next round, if this one is closed. */
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
  /** Of accepted groups whose rewards are known; empty with `equalRewards` `keep`. */
  readonly outcomes: Map<ModelGroup, RewardOutcome>;
  replacedGroups: number;
  maxReplacedGroups: number;
  /** Finished groups without a place, in order. */
  readonly held: Set<ModelGroup>;
  droppedGroups: number;
  /** Places kept for pinned groups. */
  reserved: number;
  /** Places by domain, and those for any; only with quotas. */
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

/** An attempt whose holder is to be told to stop; it confirms with `fail`. */
export interface ModelAbort {
  request: ModelRequest;
  attempt: number;
}
/** A new group; its requests are made by the model. */
export interface ModelSubmission {
  groupId: string;
  samples: number;
  /** Default: `samples`. */
  minSamples?: number;
  domain?: string;
  /** What its samples may come to, for orders of dispatch by length. Default: 0. */
  maxTokens?: number;
  /** What is remembered of the prompt. */
  lengths?: PromptLengths;
}
