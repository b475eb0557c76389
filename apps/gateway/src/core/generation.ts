import { randomUUID } from 'node:crypto';
import { type BroomwagonError, LIMITS, type Prompt, type SamplingParameters } from '@broomwagon/contracts';
import type { PassedRequest } from '@broomwagon/engines';
import { RoutedExperts, type LeaseRequest, type MovableCall, type StopCause } from '@broomwagon/generation';
import { isCount } from '../fields/read-fields';
import type { ChoiceClaims } from './choice-claims';
import { MessageLog, type SavedMessage } from './message-log';
import type { RepeatIdentity } from './repeat-identity';
import type { Recording } from './recording/recording';
import { TokenLog } from './token-log';
import { type NamedTokens, TokenNames } from './token-names';

/** Input of a generation, read by a dialect from a request. */
export interface GenerationInput {
  prompt: Prompt;
  sampling: SamplingParameters;
  /** Budget of the whole response, tokens; Infinity: until the context is full. */
  maxTokens: number;
  /** Whether the text of a response that ended by a stop text contains the stop text. */
  keepsStop: boolean;
  /**
   * Whether the response is continued with its tokens when a call ends early; otherwise it is repeated from the start.
   */
  isContinued: boolean;
  /** The client reads texts, offsets or alternatives of tokens. */
  hasNames?: boolean;
  /** Whether routed experts are answered in the form of SkyRL. */
  packsExperts?: boolean;
  /** Whether the engine parses tool calls in the message of a chat. */
  hasTools?: boolean;
  /** Whether the response is also continued after an abort by the engine; otherwise the abort ends it. */
  continuesEngineAborts: boolean;
  /** The body is passed to the engine as it is, and the answer back; the prompt is used only to choose a server. */
  passed?: Omit<PassedRequest, 'engineRequestId'>;
  /** Session, group, priority and weight gates of the acquires. */
  placement: Omit<LeaseRequest, 'requestId'>;
}

/** End of a generation. */
export type GenerationEnd =
  | { reason: 'stop'; matched?: string | number }
  | { reason: 'length' }
  | { reason: 'abort'; message: string }
  | { reason: 'error'; error: BroomwagonError };

/** Tokens [start, end) of a response, and the weights that generated them. */
export interface WeightSpan {
  version: string;
  start: number;
  end: number;
}

/** Tokens of an earlier generation of the same request. */
export interface RestoredTokens {
  /** Absent: the engine has sent no ids. Only an ended response is saved without ids. */
  tokenIds?: number[];
  text: string;
  logprobs?: number[];
  spans: WeightSpan[];
  /** See {@link Generation.isVersionReported}. */
  isVersionReported: boolean;
  promptTokens?: number;
  /** Ids of the rendered prompt of a chat, and its message. */
  promptTokenIds?: number[];
  message?: SavedMessage;
  /** Names of the tokens, if the client reads them. */
  names?: NamedTokens;
  /** The rest of a response that has ended. */
  whole?: WholeResponse;
}

/** An answer that is passed on as the engine has sent it. */
export interface RawAnswer {
  status: number;
  contentType: string;
  pieces: Buffer[];
  /** False for a stream, whose pieces are written as they arrive. */
  isWhole: boolean;
}

/** Parts of an ended response besides its tokens. */
export interface WholeResponse extends Pick<
  Generation,
  'serverId' | 'model' | 'cachedTokens' | 'engineFields' | 'recording'
> {
  end: GenerationEnd;
  tokenCount: number;
  /** Answer of a request that is passed on; `body` is base64. */
  answer?: Omit<RawAnswer, 'pieces'> & { body: string };
}

/** One response of a model: its tokens so far, their origin, and its end. */
export class Generation {
  /** Unique among the generations of all replicas. */
  readonly uid = randomUUID();
  readonly tokens: TokenLog;
  /** The running call. */
  call: MovableCall | undefined;
  end: GenerationEnd | undefined;
  /** End of a response that another replica has generated as a whole. */
  restoredEnd: GenerationEnd | undefined;
  /** Some tokens were sent to a client, so that the response cannot start again. */
  isSent = false;
  /** Another replica continues the response, with a client of its own. */
  isLost = false;
  /** No client reads the response, and its client may repeat the request: another replica may take the request over. */
  isUnread = false;
  /** Number of calls of engines. */
  attempts = 0;
  /** Start of the last call. */
  calledAt = 0;
  /** Number of restarts of the response without its tokens. */
  restarts = 0;
  serverId: string | undefined;
  /** Name of the model of this server, if it is registered with one. */
  model: string | undefined;
  spans: WeightSpan[] = [];
  /** False while the engine has not reported the weights of a span: then the version comes from the lease. */
  isVersionReported = true;
  promptTokens: number | undefined;
  /** Prompt token ids, from the request or as reported by the first engine. */
  promptTokenIds: number[] | undefined;
  cachedTokens: number | undefined;
  /** Answer of a request that is passed on. */
  answer: RawAnswer | undefined;
  /** Fields of the last answer of the engine that the gateway does not read. */
  engineFields: Record<string, unknown> = {};
  /** Routed experts, if the client has asked for them. */
  readonly experts: RoutedExperts | undefined;
  /** Counts changes of spans, usage or fields. */
  descriptions = 0;
  readonly startedAt = performance.now();
  grantedAt: number | undefined;
  firstTokenAt: number | undefined;
  /** Claims of a request with several choices that has an identity. */
  choices: ChoiceClaims | undefined;
  /** Recording in the trajectory, set before the first call of an engine if the session is recorded. */
  recording: Recording | undefined;
  /** Resolves when `recording` is known. */
  turnBegun: Promise<void> | undefined;
  /** Resolves at the end. */
  readonly ended: Promise<GenerationEnd>;
  private resolveEnd!: (end: GenerationEnd) => void;
  /** Created when it is needed: most generations end without one. */
  private stopping: AbortController | undefined;
  private stopCause: StopCause | undefined;
  private readonly listeners = new Set<() => void>();

  /**
   * @param id id of the client, else a new one; `rid` of SGLang
   * @param recordFor the session is recorded, on the payload quota of this job; absent: if it was opened for recording
   * @param repeat identity of the request and its repeats; absent: repeats cannot be recognized
   * @param requestId id of the request, if it has several choices
   */
  constructor(
    readonly id: string,
    readonly tokenId: string,
    readonly input: GenerationInput,
    readonly repeat?: RepeatIdentity,
    readonly recordFor?: string,
    readonly requestId = id,
  ) {
    const { prompt, sampling, keepsStop } = input;
    const message =
      prompt.messages && new MessageLog(sampling.logprobs ? Number(prompt.engineFields?.top_logprobs ?? 0) : undefined);
    const names = input.hasNames ? new TokenNames() : undefined;
    this.tokens = new TokenLog(sampling.stop ?? [], keepsStop, message, names);
    this.promptTokenIds = prompt.promptTokenIds;
    this.experts = RoutedExperts.of(prompt);
    this.ended = new Promise((resolve) => (this.resolveEnd = resolve));
  }

  /** Whether the client or the trajectory needs log probabilities. */
  get needsLogprobs(): boolean {
    return this.input.sampling.logprobs === true || this.recording?.turn !== undefined;
  }

  /** Signal that is aborted once the generation is stopped. */
  get signal(): AbortSignal {
    this.stopping ??= new AbortController();
    if (this.stopCause !== undefined) this.stopping.abort();
    return this.stopping.signal;
  }

  /** Cause of the stop; the first cause stays. */
  get stoppedBy(): StopCause | undefined {
    return this.stopCause;
  }

  /** Stops the generation, because another replica has the request. */
  lose(): void {
    this.isLost = true;
    this.stop('shutdown');
  }

  stop(cause: StopCause): void {
    if (this.stopCause !== undefined || this.end !== undefined) return;
    this.stopCause = cause;
    this.stopping?.abort();
    this.call?.stop(cause);
  }

  /** Takes the tokens that another replica has generated, before the first call. */
  restore(made: RestoredTokens): void {
    const { tokenIds, text, logprobs, message, names, whole } = made;
    const choice = names && { logprobs: names };
    this.tokens.restore({ tokenIds, text, logprobs, tokenCount: whole?.tokenCount ?? tokenIds!.length, choice });
    this.promptTokenIds ??= made.promptTokenIds;
    const isReadable = whole !== undefined || (message?.isContentLast === true && !this.input.hasTools);
    if (message !== undefined) this.tokens.message?.restore(message, isReadable);
    this.spans = made.spans;
    this.isVersionReported = made.isVersionReported;
    this.promptTokens = made.promptTokens;
    if (whole !== undefined) {
      const { end, tokenCount: _count, answer, ...others } = whole;
      this.restoredEnd = end;
      if (answer !== undefined) this.answer = { ...answer, pieces: [Buffer.from(answer.body, 'base64')] };
      Object.assign(this, others);
    }
    this.descriptions += 1;
    this.changed();
  }

  /**
   * Records the size of the prompt, as a call reports it with its first tokens.
   * @param madeTokens tokens of the calls before, which are part of the prompt of this call
   */
  countPrompt(promptTokens: number | undefined, madeTokens: number): void {
    if (this.promptTokens !== undefined || !isCount(promptTokens, madeTokens, LIMITS.maxTokens)) return;
    this.promptTokens = promptTokens! - madeTokens;
    this.descriptions += 1;
  }

  /** Starts the response again without tokens. */
  restart(): void {
    this.tokens.clear();
    this.experts?.clear();
    this.answer = undefined;
    this.spans = [];
    this.restarts += 1;
  }

  finish(end: GenerationEnd): void {
    this.end ??= end;
    this.tokens.complete();
    this.resolveEnd(this.end);
    this.changed();
  }

  /** Reports new tokens, or the end, to the listeners. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Calls the listener after each change. @returns function that removes the listener */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Whether a response is being written, and has received tokens for less than this time.
   * @param ageMs 0: for any time
   */
  isWatchedForLess(ageMs: number): boolean {
    if (this.listeners.size === 0) return false;
    return ageMs === 0 || this.firstTokenAt === undefined || performance.now() - this.firstTokenAt < ageMs;
  }

  /** Adds the weights of tokens [from, to) to the spans. */
  addSpan(version: string, start: number, end: number): void {
    const last = this.spans.at(-1);
    if (last?.version === version) last.end = end;
    else if (end > start) this.spans.push({ version, start, end });
  }
}
