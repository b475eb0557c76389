import type { EngineCapabilities, EngineDialect, PauseMode, Prompt, SamplingParameters } from '@broomwagon/contracts';
import type { EngineAccess } from './access/engine-access';
import type { StopSignal } from './stop-signal';

/** Result of the probe of an engine; nothing here is guessed from a version alone. */
export interface EngineDescription {
  model: string;
  /** All models and adapters that it lists, with {@link ANY_MODEL} if it has more than are kept. */
  models: string[];
  /** Identity of this start of the engine; absent when it has none. */
  instanceId?: string;
  /** Version of the weights that are loaded, where the engine reports it (SGLang) as a number. */
  weightVersion?: number;
  capabilities: EngineCapabilities;
}

/** Tokens that earlier attempts of a sample made, all in order. */
export interface MadeTokens {
  tokenIds?: number[];
  text?: string;
  /** Needed when there are no token ids; default the length of tokenIds. */
  tokenCount?: number;
}

/** One attempt of one sample. */
export interface GenerationRequest {
  /** From {@link engineRequestId}: fixed length and unique per attempt, since SGLang matches ids by prefix. */
  engineRequestId: string;
  prompt: Prompt;
  sampling?: SamplingParameters;
  /**
   * Budget of the whole sample, tokens; tokens made already count against it. Infinity: until the context is full; JSON
   * writes it as null.
   */
  maxTokens: number;
  /**
   * A budget that the engine refuses, since the context has no room for it beside the prompt, is clipped to the room
   * there is. A response that fills the context ends with `length`.
   */
  clipsBudget?: true;
  made?: MadeTokens;
  /**
   * Cache salt of the lease: cache entries of other weights have another salt. Sent to engines that keep them apart.
   */
  cacheSalt?: string;
}

/** A choice in a chunk of `/v1/completions` or `/v1/chat/completions`, as the engine sent it. */
export interface EngineChoice {
  text?: string;
  /** Only in a chat: the new part of the message. */
  delta?: Record<string, unknown> | null;
  /** vLLM, with return_token_ids. */
  token_ids?: number[] | null;
  /**
   * vLLM, with return_token_ids, in the first chunk of a completion; the first chunk of a chat has them beside its
   * choices.
   */
  prompt_token_ids?: number[] | null;
  logprobs?: {
    tokens?: string[];
    token_logprobs?: (number | null)[];
    top_logprobs?: (Record<string, number> | null)[] | null;
    content?: { logprob: number | null }[] | null;
  } | null;
  finish_reason?: string | null;
  /** vLLM: the stop string or token id. */
  stop_reason?: string | number | null;
  /** SGLang: the same. */
  matched_stop?: string | number | null;
}

/** Tokens as they arrive; text and ids belong to this increment only. An increment may have no tokens. */
export interface TokenIncrement {
  tokenIds?: number[];
  text: string;
  tokenCount: number;
  /** Null where the engine has none. */
  logprobs?: (number | null)[];
  /** The engine reports with it that the response is complete. */
  isLast?: true;
  /**
   * With `isLast`: the stop text that has ended the response. The text contains it; the owner of the text removes it.
   */
  matchedStop?: string;
  /** Ids of the prompt of this attempt, in one increment, if the engine reports them. */
  promptTokenIds?: number[];
  /** Tokens of the prompt of this attempt, if the engine counts them here. */
  promptTokens?: number;
  /** Engines with OpenAI routes: parts of a message that are not text (tool calls) are only here. */
  choice?: EngineChoice;
}

/** Tokens of this attempt, without tokens of earlier attempts. */
export interface GenerationResult {
  tokenIds?: number[];
  text: string;
  tokenCount: number;
  /** `aborted`: the caller's signal fired, or the engine ended it by itself; it can be continued. */
  finishReason: 'stop' | 'length' | 'aborted';
  /** Stop string or token, as the engine reports it, or its finish reason when Broomwagon has none like it. */
  stopReason?: string | number;
  /** The finish reason as the engine named it; absent if it named none. */
  engineFinishReason?: string;
  logprobs?: (number | null)[];
  /** Fields of the engine's answer that Broomwagon does not read: see {@link StreamStep.engineFields}. */
  engineFields?: Record<string, unknown>;
  usage?: { promptTokens: number; completionTokens: number; cachedTokens?: number };
  /** How made tokens were handed back; absent when this was a fresh start. `text` is exact up to the tokenizer. */
  resumedBy?: 'tokens' | 'text';
}

/** A whole response to messages. */
export interface GeneratedChat {
  prompt: Prompt;
  /** Ids of the rendered prompt. */
  promptTokenIds: number[];
  tokenIds: number[];
  text: string;
  finishReason: 'stop' | 'length' | 'abort';
}

export interface GenerateOptions {
  /** Aborting it disconnects, aborts by id where the engine can, and gives finishReason `aborted`: no error. */
  signal?: StopSignal;
  /** Called in order with every increment; only increments given to it survive a thrown error. Must not throw. */
  onTokens?: (increment: TokenIncrement) => void;
  /**
   * True: each chunk is read when it arrives. Default: chunks after the first token wait up to 100 ms for others, and
   * up to 200 ms once the call has run for 10 s.
   */
  readsAtOnce?: () => boolean;
  /** False: the result has the number of tokens and not the tokens, which `onTokens` has given. Default true. */
  keepsTokens?: boolean;
  /**
   * Name of a long field of the engine's answer that is returned as {@link OpaqueText}. The engine reports it with its
   * last event, so a stream that is aborted is read to its end, for 3 s at most.
   */
  opaqueField?: string;
  /** Called once, before the engine is asked: how made tokens are handed back. Must not throw. */
  onPlan?: (plan: Pick<GenerationResult, 'resumedBy'>) => void;
  /**
   * Called before the end when it was stopped or has failed and the engine has not answered the abort by id: it may
   * still be at work. Repeat the stop with {@link EngineAdapter.abort}. Must not throw.
   */
  onUnstopped?: () => void;
  /**
   * Called if the engine does not decode token ids where text may be missing: at a cut, when it has not shown that it
   * sends stop texts, and at the beginning of a call that continues ids. Must not throw.
   */
  onUncheckedText?: () => void;
}

/** The load that an engine reports. */
export interface EngineLoad {
  running: number;
  waiting: number;
  /** KV cache in use, 0 to 1. */
  kvUse?: number;
  /** Tokens that its KV caches hold, of all ranks. */
  kvTokens?: number;
  /** Preemptions since the engine started. */
  preemptions?: number;
  /** Tokens of waiting requests that its prefix cache does not hold. */
  uncachedTokens?: number;
  /** Count of prompt and response tokens since the start, by the engine: it generates while the count changes. */
  tokens?: number;
}

/** Report of an engine at a probe; a field is absent if it was not asked for, or has no answer. */
export interface EngineReport {
  load?: EngineLoad;
  /** Start time by the engine's clock, seconds since 1970: it changes with a restart. */
  startedAtSeconds?: number;
  /** Version of the weights that are loaded; -1 if the engine reports that it has no number for them. */
  weightVersion?: number;
  /** Models and adapters that it lists, as in {@link EngineDescription}. */
  models?: string[];
}

/** A request for tokens whose fields only the engine reads: its answer is passed on as it is. */
export interface PassedRequest {
  /** Id of the request, as in {@link GenerationRequest}. */
  engineRequestId: string;
  /** Routes that take the body: the first one that the engine has is called. */
  paths: readonly string[];
  /** The id of the request is replaced. */
  body: Record<string, unknown>;
  /** Headers that engines read. */
  headers?: Record<string, string>;
  /** Cache salt, as in {@link GenerationRequest}. */
  cacheSalt?: string;
  /** The field because of which the request is passed on: it is named if the engine has none of the routes. */
  reason: string;
}

/** Answer of an engine to a {@link PassedRequest}: 200, or the status of a refusal. */
export interface PassedAnswer {
  status: number;
  contentType: string;
  /** The whole answer, also of a stream that has ended. */
  body: Buffer;
}

export interface PassOptions extends Pick<GenerateOptions, 'signal' | 'onUnstopped'> {
  /** Gets each piece of an answer that is a stream of events. Must not throw. */
  onPiece?: (piece: Buffer, contentType: string) => void;
}

/** A call of an engine that is passed on unread. */
export interface ForwardedCall {
  method: 'GET' | 'POST';
  /** Path with its query. */
  path: string;
  /** JSON. */
  body?: Buffer;
  timeoutMs: number;
}

/**
 * One engine behind one base URL. Stateless but for its connections, so one adapter serves any number of streams.
 *
 * Errors: ENGINE_UNREACHABLE (no connection), ENGINE_BUSY (429, 503 and others that report that it cannot serve now,
 * with `retryAfterMs` if the engine names it), ENGINE_ERROR (5xx, error in the stream, stream broken off),
 * ENGINE_STALLED (nothing came within the deadline), ENGINE_REJECTED (4xx, or this dialect cannot do it),
 * ENGINE_PROTOCOL (an answer that is not of this dialect).
 */
export interface EngineAdapter {
  readonly dialect: EngineDialect;
  readonly url: string;
  /** Reads model and capabilities of the engine. ENGINE_PROTOCOL when it is not of this dialect. */
  probe(signal?: AbortSignal): Promise<EngineDescription>;
  /**
   * Runs one attempt to its end. The request to the engine has only ids of prompt and budget: see {@link planAttempt}.
   */
  generate(request: GenerationRequest, options?: GenerateOptions): Promise<GenerationResult>;
  /**
   * Makes a call whose answer is passed on as it is, a whole answer or a stream. Errors as {@link generate} has them,
   * also if the signal fires; an engine that refuses the request is no error.
   */
  pass(request: PassedRequest, options: PassOptions): Promise<PassedAnswer>;
  /** Stops one request by id; answered, it is stopped. False when there is no such route; an unknown id is no error. */
  abort(engineRequestId: string): Promise<boolean>;
  /** Whether the engine has the route of {@link parseChat}. */
  canParseChats(): Promise<boolean>;
  /** The message of a chat (content, reasoning, tool calls) as the chat route of the engine writes it. */
  parseChat(chat: GeneratedChat): Promise<Record<string, unknown>>;
  /** Reads the report of the engine, in as few calls as possible. Never throws. */
  report(): Promise<EngineReport>;
  /** Resolves when the engine reports that it is healthy. ENGINE_REJECTED when it answers with 4xx. */
  health(signal?: AbortSignal): Promise<void>;
  /**
   * Stops generating until {@link resume}; requests that come meanwhile wait in the engine. `wait` resolves only when
   * everything that ran has ended, so the caller sets its deadline: `timeoutMs`, by default the deadline of any call.
   * ENGINE_REJECTED for a mode the dialect does not have, and when the engine has no such route. Repeating is harmless.
   */
  pause(mode: PauseMode, timeoutMs?: number): Promise<void>;
  /** Ends a pause; harmless when there is none. ENGINE_REJECTED when the engine cannot be paused. */
  resume(): Promise<void>;
  /**
   * Makes any other call of the engine, and returns its status and body, whatever they are. ENGINE_UNREACHABLE and
   * ENGINE_ERROR when the engine did not answer within `timeoutMs`.
   * @param path path with its query
   */
  forward(call: ForwardedCall): Promise<{ status: number; text: string }>;
  /**
   * Empties the prefix cache, so that nothing computed by older weights is used again. ENGINE_ERROR when the engine
   * refused, for one because requests hold it: end or pause them first. ENGINE_REJECTED when it has no such route.
   * @param timeoutMs default `callTimeoutMs`
   */
  resetPrefixCache(timeoutMs?: number): Promise<void>;
}

/** Deadlines and bounds of an adapter. Generations may last hours: only silence is bounded, never the whole. */
export interface EngineAdapterOptions {
  /** Model name for engines that want one; default the first the engine lists. */
  model?: string;
  /** Sent as a bearer token. */
  apiKey?: string;
  /** Where engines may be. Default: anywhere but link-local and metadata addresses. */
  access?: EngineAccess;
  /** Asked during a silence: true while the engine is paused. That time counts neither as silence nor as a failure. */
  isPaused?: () => Promise<boolean>;
  /** Default 5,000. */
  connectTimeoutMs?: number;
  /** From the request to the first token, queueing in the engine included; default 30 minutes. */
  firstTokenTimeoutMs?: number;
  /** Longest time from then on without an event, keep-alive comments not counted; default 120,000. */
  stallTimeoutMs?: number;
  /** Whole answer of probe, load, health and abort; default 5,000. */
  callTimeoutMs?: number;
  /** Most streams to one engine at once, of this process; more wait for one to end. Default 4,096. */
  maxStreams?: number;
  /** Longest line of a stream, bytes; default 1 MiB, 64 MiB for SGLang, whose chunks may repeat all that was made. */
  maxLineBytes?: number;
}
