import type { EngineCapabilities, EngineDialect, PauseMode, Prompt, SamplingParameters } from '@broomwagon/contracts';
import type { EngineAccess } from './access/engine-access';
import type { StopSignal } from './stop-signal';

/** Result of the probe of an engine; nothing here is guessed from a version alone. */
export interface EngineDescription {
  model: string;
  /** All models and adapters of the engine, with {@link ANY_MODEL} if there are more than are kept. */
  models: string[];
  /** Identity of this start of the engine, if it has one. */
  instanceId?: string;
  /** Version of the loaded weights, if the engine reports a number (SGLang). */
  weightVersion?: number;
  capabilities: EngineCapabilities;
}

/** Tokens that earlier attempts of a sample made, all in order. */
export interface MadeTokens {
  tokenIds?: number[];
  text?: string;
  /** Required without token ids; default: the length of `tokenIds`. */
  tokenCount?: number;
}

/** One attempt of one sample. */
export interface GenerationRequest {
  /** From {@link engineRequestId}: fixed length and unique per attempt, since SGLang matches ids by prefix. */
  engineRequestId: string;
  prompt: Prompt;
  sampling?: SamplingParameters;
  /** Maximum tokens of the whole sample, made tokens included. Infinity (null in JSON): until the context is full. */
  maxTokens: number;
  /**
   * Clips a budget that the engine refuses to the room that the context has beside the prompt. A response that fills
   * the context ends with `length`.
   */
  clipsBudget?: true;
  made?: MadeTokens;
  /** Salt of the lease, sent to engines with cache salts: cache entries of other weights have another salt. */
  cacheSalt?: string;
  /** Session of the request, sent to engines that close sessions. */
  sessionId?: string;
  /**
   * Tokens of one event that an engine with intervals is asked for; default 1. `sampling.streamInterval` has
   * precedence. Chats that the engine parses come in single tokens: parsers of many releases lose tool calls and
   * reasoning in larger events.
   */
  streamInterval?: number;
}

/** A choice in a chunk of `/v1/completions` or `/v1/chat/completions`, as the engine sent it. */
export interface EngineChoice {
  text?: string;
  /** Only in a chat: the new part of the message. */
  delta?: Record<string, unknown> | null;
  /** vLLM, with return_token_ids. */
  token_ids?: number[] | null;
  /** vLLM, with return_token_ids: ids of the prompt, in the first chunk; a chat has them beside its choices. */
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
  /** SGLang: the stop text or token id. */
  matched_stop?: string | number | null;
}

/** Tokens as they arrive; text and ids belong to this increment only. An increment may have no tokens. */
export interface TokenIncrement {
  tokenIds?: number[];
  text: string;
  tokenCount: number;
  /** Log probability of each token; null for a token without one. */
  logprobs?: (number | null)[];
  /** The engine reports with this increment that the response is complete. */
  isLast?: true;
  /** With `isLast`: stop text that has ended the response; the owner of `text` removes the stop text from `text`. */
  matchedStop?: string;
  /** Ids of the prompt of this attempt, in one increment, if the engine reports them. */
  promptTokenIds?: number[];
  /** Tokens of the prompt of this attempt, if the engine counts them here. */
  promptTokens?: number;
  /** Engines with OpenAI routes: only the choice has the parts of a message that are not text (tool calls). */
  choice?: EngineChoice;
}

/** Tokens of this attempt, without tokens of earlier attempts. */
export interface GenerationResult {
  tokenIds?: number[];
  text: string;
  tokenCount: number;
  /** `aborted`: the signal fired, or the engine ended the request by itself. The response can be continued. */
  finishReason: 'stop' | 'length' | 'aborted';
  /** Stop text or token as the engine reports it, or a finish reason that Broomwagon does not have. */
  stopReason?: string | number;
  /** The finish reason as the engine named it; absent if it named none. */
  engineFinishReason?: string;
  logprobs?: (number | null)[];
  /** Fields of the engine's answer that Broomwagon does not read: see {@link StreamStep.engineFields}. */
  engineFields?: Record<string, unknown>;
  usage?: { promptTokens: number; completionTokens: number; cachedTokens?: number };
  /** How made tokens were sent to the engine; absent without made tokens. `text` is exact up to the tokenizer. */
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
  /**
   * An abort gives finishReason `aborted`: no error. The request is aborted by id, and the tokens that the engine had
   * not sent are read, for `endTimeoutMs`; without an abort by id, the connection is closed.
   */
  signal?: StopSignal;
  /** Called in order with every increment; a thrown error loses all other tokens. Must not throw. */
  onTokens?: (increment: TokenIncrement) => void;
  /**
   * True: each chunk is read when it arrives. Default: chunks after the first token wait up to 100 ms for others, and
   * up to 200 ms once the call has run for 10 s.
   */
  readsAtOnce?: () => boolean;
  /** False: the result has the number of tokens only; `onTokens` has got the tokens. Default true. */
  keepsTokens?: boolean;
  /**
   * Name of a long field that is returned as {@link OpaqueText}. The engine reports the field with its last event.
   */
  opaqueField?: string;
  /** Called once, before the call of the engine: how made tokens are sent. Must not throw. */
  onPlan?: (plan: Pick<GenerationResult, 'resumedBy'>) => void;
  /**
   * Called before the end of a stopped or failed call if the engine has not answered the abort by id, and may still run
   * the request. Repeat the stop with {@link EngineAdapter.abort}. Must not throw.
   */
  onUnstopped?: () => void;
  /**
   * Called at the end of a call that was long enough to tell whether the events came as asked. Must not throw.
   * @param tokens mean tokens of an event, if they were less than half or more than twice of what the call had asked
   *   for; 0: the events came as asked
   * @param interval tokens of an event that the call had asked for
   */
  onEventSizes?: (tokens: number, interval: number) => void;
  /**
   * Called before the end of a call with the number of tokens that the engine has generated and that are lost: counted
   * by the engine, or estimated by the pace of a stream that broke. The call that continues the response generates them
   * again. Must not throw.
   */
  onLost?: (tokenCount: number) => void;
  /**
   * Called if the engine does not decode token ids where text may be missing: at the beginning of a call that continues
   * ids, and at a cut, unless the engine has shown that it sends stop texts. Must not throw.
   */
  onUncheckedText?: () => void;
}

export interface EngineLoad {
  running: number;
  waiting: number;
  /** KV cache in use, 0 to 1. */
  kvUse?: number;
  /** Tokens that the KV caches of all ranks hold. */
  kvTokens?: number;
  /** Preemptions since the engine started. */
  preemptions?: number;
  /** Tokens of waiting requests that the prefix cache does not hold. */
  uncachedTokens?: number;
  /** Prompt and response tokens that the engine has counted since its start; they change while it generates. */
  tokens?: number;
}

/** Report of an engine at a probe; a field is absent if it was not asked for, or has no answer. */
export interface EngineReport {
  load?: EngineLoad;
  /** Start time by the engine's clock, seconds since 1970: it changes with a restart. */
  startedAtSeconds?: number;
  /** Version of the loaded weights; -1 if the engine reports that its weights have no number. */
  weightVersion?: number;
  /** Models and adapters that the engine lists, as in {@link EngineDescription}. */
  models?: string[];
}

/** A request for tokens whose fields only the engine reads: its answer is passed on as it is. */
export interface PassedRequest {
  /** Id of the request, as in {@link GenerationRequest}. */
  engineRequestId: string;
  /** Routes that take the body: the first route that the engine has is called. */
  paths: readonly string[];
  /** Body of the request; the id of the request is replaced. */
  body: Record<string, unknown>;
  headers?: Record<string, string>;
  /** Cache salt, as in {@link GenerationRequest}. */
  cacheSalt?: string;
  /** Field because of which the request is passed on; the error of an engine without the routes names the field. */
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
 * One engine behind one base URL; one adapter serves any number of streams. Errors:
 *
 * - ENGINE_UNREACHABLE: no connection
 * - ENGINE_BUSY: 429, 503 and others: the engine cannot serve now, with `retryAfterMs` if the engine reports the time
 * - ENGINE_ERROR: 5xx, error in the stream, stream broken off
 * - ENGINE_STALLED: nothing came within the deadline
 * - ENGINE_REJECTED: 4xx, or the dialect cannot do this
 * - ENGINE_PROTOCOL: an answer that is not of this dialect
 */
export interface EngineAdapter {
  readonly dialect: EngineDialect;
  readonly url: string;
  /** Reads model and capabilities of the engine. ENGINE_PROTOCOL if the engine is not of this dialect. */
  probe(signal?: AbortSignal): Promise<EngineDescription>;
  /** Runs one attempt to its end. {@link planAttempt} makes prompt and budget of the call. */
  generate(request: GenerationRequest, options?: GenerateOptions): Promise<GenerationResult>;
  /**
   * Makes a call whose answer, whole or a stream, is passed on as it is. Throws the errors of {@link generate}, also if
   * the signal fires; a refusal of the engine is an answer.
   */
  pass(request: PassedRequest, options: PassOptions): Promise<PassedAnswer>;
  /** Stops one request by id. True: the request is stopped, or unknown. False: the engine has no such route. */
  abort(engineRequestId: string): Promise<boolean>;
  /** Whether the engine has the route of {@link parseChat}. */
  canParseChats(): Promise<boolean>;
  /** The message of a chat (content, reasoning, tool calls) as the chat route of the engine writes it. */
  parseChat(chat: GeneratedChat): Promise<Record<string, unknown>>;
  /** Reads the report of the engine, in as few calls as possible. Never throws. */
  report(): Promise<EngineReport>;
  /** Resolves when the engine reports that it is healthy. ENGINE_REJECTED if the engine answers with 4xx. */
  health(signal?: AbortSignal): Promise<void>;
  /**
   * Pauses the engine until {@link resume}; requests that arrive meanwhile wait in the engine. `wait` resolves when all
   * running requests have ended, within `timeoutMs` (default: `callTimeoutMs`). ENGINE_REJECTED if the dialect has no
   * such mode, or the engine no such route. The call may be repeated.
   */
  pause(mode: PauseMode, timeoutMs?: number): Promise<void>;
  /** Ends a pause, if there is one. ENGINE_REJECTED if the engine cannot be paused. */
  resume(): Promise<void>;
  /**
   * Makes any other call of the engine, and returns any answer. ENGINE_UNREACHABLE and ENGINE_ERROR if no answer
   * arrives within `timeoutMs`.
   * @param path path with its query
   */
  forward(call: ForwardedCall): Promise<{ status: number; text: string }>;
  /**
   * Empties the prefix cache, so that nothing computed by older weights is used again. ENGINE_ERROR if the engine
   * refuses, for example while requests use the cache; ENGINE_REJECTED if the engine has no such route.
   * @param timeoutMs default `callTimeoutMs`
   */
  resetPrefixCache(timeoutMs?: number): Promise<void>;
  /**
   * Tells the engine that a session has ended. Safe to repeat.
   * @throws BroomwagonError ENGINE_REJECTED if the engine has no route for it, ENGINE_ERROR, ENGINE_UNREACHABLE
   */
  closeSession(sessionId: string, timeoutMs?: number): Promise<void>;
}

/** Deadlines and bounds of an adapter. Generations may last hours: only silence is bounded, never the whole. */
export interface EngineAdapterOptions {
  /** Model name in requests; default: the first model that the engine lists. */
  model?: string;
  /** Sent as a bearer token. */
  apiKey?: string;
  /** Allowed addresses. Default: all except link-local and metadata addresses. */
  access?: EngineAccess;
  /** Asked during a silence: true while the engine is paused. A pause counts neither as silence nor as failure. */
  isPaused?: () => Promise<boolean>;
  /** Default 5,000. */
  connectTimeoutMs?: number;
  /** From the request to the first token, queueing in the engine included; default 30 minutes. */
  firstTokenTimeoutMs?: number;
  /** Maximum time without an event after the first token, keep-alive comments not counted; default 120,000. */
  stallTimeoutMs?: number;
  /** Maximum time for the rest of a stream whose request was aborted by its id; default 3,000. */
  endTimeoutMs?: number;
  /** Maximum time for a whole answer of probe, report, health and abort; default 5,000. */
  callTimeoutMs?: number;
  /** Maximum streams of this process to one engine; further streams wait. Default 4,096. */
  maxStreams?: number;
  /** Maximum bytes of a line; default 1 MiB, 64 MiB for SGLang, whose chunks may repeat all tokens. */
  maxLineBytes?: number;
}
