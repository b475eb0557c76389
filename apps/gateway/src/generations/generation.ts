import { randomUUID } from 'node:crypto';
import { type BroomwagonError, LIMITS, type Prompt, type SamplingParameters } from '@broomwagon/contracts';
import type { PassedRequest } from '@broomwagon/engines';
import { RoutedExperts, type LeaseRequest, type MovableCall, type StopCause } from '@broomwagon/generation';
import { isCount } from '../http/read-fields';
import type { ChoiceClaims } from './choice-claims';
import { MessageLog, type SavedMessage } from './message-log';
import type { RepeatIdentity } from './repeat-identity';
import type { Recording } from '../trajectories/recording';
import { TokenLog } from './token-log';
import { type NamedTokens, TokenNames } from './token-names';

/** What a dialect has read from a request. */
export interface GenerationInput {
  prompt: Prompt;
  sampling: SamplingParameters;
  /** Budget of the whole response, tokens; Infinity: until the context is full. */
  maxTokens: number;
  /** The text of a response that ended by a stop text contains that text. */
  keepsStop: boolean;
  /** Continued with its tokens when a call ends early; otherwise repeated from the start. */
  isContinued: boolean;
  /** The client reads texts, offsets or alternatives of tokens. */
  hasNames?: boolean;
  /** Routed experts are answered in the form of SkyRL. */
  packsExperts?: boolean;
  /** A chat in whose message the engine looks for calls of tools. */
  hasTools?: boolean;
  /** An abort that the engine made by itself is continued too; otherwise it ends the response. */
  continuesEngineAborts: boolean;
  /** The body is passed to the engine as it is, and the answer back; the prompt serves for the place only. */
  passed?: Omit<PassedRequest, 'engineRequestId'>;
  /** Session, group, priority and weight gates of its acquires. */
  placement: Omit<LeaseRequest, 'requestId'>;
}

/** How a generation ended. */
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
  /** Absent: the engine has sent no ids. Only a response that has ended is saved without them. */
  tokenIds?: number[];
  text: string;
  logprobs?: number[];
  spans: WeightSpan[];
  /** As that of {@link Generation}. */
  isVersionReported: boolean;
  promptTokens?: number;
  /** Of a chat: ids of its rendered prompt, and its message. */
  promptTokenIds?: number[];
  message?: SavedMessage;
  /** If the client reads them. */
  names?: NamedTokens;
  /** Of a response that has ended. */
  whole?: WholeResponse;
}

/** An answer that is passed on as the engine has sent it. */
export interface RawAnswer {
  status: number;
  contentType: string;
  pieces: Buffer[];
  /** False of a stream, whose pieces are written as they come. */
  isWhole: boolean;
}

/** What a response that has ended has beside its tokens. */
export interface WholeResponse extends Pick<
  Generation,
  'serverId' | 'model' | 'cachedTokens' | 'engineFields' | 'recording'
> {
  end: GenerationEnd;
  tokenCount: number;
  /** Of a request that is passed on; `body` is base64. */
  answer?: Omit<RawAnswer, 'pieces'> & { body: string };
}

/** One response of a model: its tokens so far, how they were made, and its end. */
export class Generation {
  /** Unique among the generations of all replicas. */
  readonly uid = randomUUID();
  readonly tokens: TokenLog;
  /** The call that is running. */
  call: MovableCall | undefined;
  end: GenerationEnd | undefined;
  /** Another replica has generated all of it. */
  restoredEnd: GenerationEnd | undefined;
  /** A response has been sent some tokens, so that it cannot begin again. */
  isSent = false;
  /** Another replica continues it, with a client of its own. */
  isLost = false;
  /** No client reads it, and its client may repeat it: another replica may take its request over. */
  isUnread = false;
  /** Calls of engines. */
  attempts = 0;
  /** When the last of them began. */
  calledAt = 0;
  /** How often it has begun again without its tokens. */
  restarts = 0;
  serverId: string | undefined;
  /** Name of the model of that server, if it is registered with one. */
  model: string | undefined;
  spans: WeightSpan[] = [];
  /** False while the engine has not reported the weights of a span: then the lease has the version. */
  isVersionReported = true;
  promptTokens: number | undefined;
  /** Those of the request, or those that the first engine has made of its text or messages, if it reports them. */
  promptTokenIds: number[] | undefined;
  cachedTokens: number | undefined;
  /** Of a request that is passed on. */
  answer: RawAnswer | undefined;
  /** Fields of the last answer of the engine that the gateway does not read. */
  engineFields: Record<string, unknown> = {};
  /** If the client has asked for them. */
  readonly experts: RoutedExperts | undefined;
  /** Grows with each change of spans, usage or fields. */
  descriptions = 0;
  readonly startedAt = performance.now();
  grantedAt: number | undefined;
  firstTokenAt: number | undefined;
  /** Of a request with several choices that has an identity. */
  choices: ChoiceClaims | undefined;
  /** Set before the first call of an engine if its session is recorded. */
  recording: Recording | undefined;
  /** Settles when that is known. */
  turnBegun: Promise<void> | undefined;
  /** Settles at the end. */
  readonly ended: Promise<GenerationEnd>;
  private resolveEnd!: (end: GenerationEnd) => void;
  /** Made when it is needed: most generations end without one. */
  private stopping: AbortController | undefined;
  private stopCause: StopCause | undefined;
  private readonly listeners = new Set<() => void>();

  /**
   * @param id of the client, else made here; `rid` of SGLang
   * @param recordFor its session is recorded, on the payload quota of this job; absent: if it has been opened for it
   * @param repeat what identifies repeats of the request; absent: they cannot be recognized
   * @param requestId that of the request, if it has several choices
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

  /** Log probabilities are needed: by the client or the trajectory. */
  get needsLogprobs(): boolean {
    return this.input.sampling.logprobs === true || this.recording?.turn !== undefined;
  }

  /** Aborted once the generation is stopped. */
  get signal(): AbortSignal {
    this.stopping ??= new AbortController();
    if (this.stopCause !== undefined) this.stopping.abort();
    return this.stopping.signal;
  }

  /** Why it was stopped; the first cause stays. */
  get stoppedBy(): StopCause | undefined {
    return this.stopCause;
  }

  /** Another replica has the request. */
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

  /** Before the first call: the tokens that another replica has generated. */
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
   * The size of the prompt, as a call reports it with its first tokens.
   * @param madeTokens of calls before, which are part of the prompt of this call
   */
  countPrompt(promptTokens: number | undefined, madeTokens: number): void {
    if (this.promptTokens !== undefined || !isCount(promptTokens, madeTokens, LIMITS.maxTokens)) return;
    this.promptTokens = promptTokens! - madeTokens;
    this.descriptions += 1;
  }

  /** Begins again without tokens. */
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

  /** New tokens, or the end. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Calls the listener after each change. @returns ends it */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * A response is written while the tokens arrive, and has got them for less than this time.
   * @param ageMs 0: however long
   */
  isWatchedForLess(ageMs: number): boolean {
    if (this.listeners.size === 0) return false;
    return ageMs === 0 || this.firstTokenAt === undefined || performance.now() - this.firstTokenAt < ageMs;
  }

  /** Weights of tokens [from, to), added to the spans before. */
  addSpan(version: string, start: number, end: number): void {
    const last = this.spans.at(-1);
    if (last?.version === version) last.end = end;
    else if (end > start) this.spans.push({ version, start, end });
  }
}
