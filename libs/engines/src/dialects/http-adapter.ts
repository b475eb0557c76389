import {
  BroomwagonError,
  type ChatMessage,
  type EngineDialect,
  type PauseMode,
  type Prompt,
  type SamplingParameters,
} from '@broomwagon/contracts';
import type {
  EngineAdapter,
  EngineAdapterOptions,
  EngineDescription,
  EngineReport,
  ForwardedCall,
  GeneratedChat,
  GenerateOptions,
  GenerationRequest,
  GenerationResult,
  PassedAnswer,
  PassedRequest,
  PassOptions,
} from '../engine-adapter';
import { EngineHttp, parseObject } from '../http/engine-http';
import { quote } from '../http/refusal';
import { couldResumeByTokens, planAttempt, type AttemptPlan } from '../resume';
import type { ChunkReader } from '../stream/chunk-reader';
import type { IncludedStop } from '../stream/included-stop';
import { OpenAiChunkReader } from '../stream/openai-chunk-reader';
import type { StopSignal } from '../stop-signal';
import { continueText } from '../stream/continued-text';
import type { EngineMemory } from '../stream/pace-meter';
import type { Decode } from '../stream/decoded-text';
import { streamGeneration, type StreamCall } from '../stream/stream-generation';
import { WithheldText } from '../stream/withheld-text';
import { toDialect, withCallerFields } from './caller-fields';
import { fitBudget } from './fit-budget';
import { readModelCards, toModelList, type ModelCard } from './model-list';
import { passCall } from './passed-call';
import { StopTokens } from './stop-tokens';
import { EngineRoutes, NO_ROUTE } from './engine-routes';
import { askedInterval, type StreamIntervals } from './stream-intervals';
import { asUnknownModel } from './unknown-model';

/** Time for which a count of the engine's tokens is used, milliseconds. */
const COUNT_FRESH_MS = 1_000;

export type RunPlan = Extract<AttemptPlan, { kind: 'run' }>;

/** A route to call and how to read its stream. */
export interface RouteCall {
  path: string;
  body: Record<string, unknown>;
  reader: ChunkReader;
  shorten?: StreamCall['shorten'];
  /** Set if the body asks for the stop text that ends the response. */
  stop?: IncludedStop;
}

/** Common part of all dialects: plans, runs and aborts an attempt, and calls the OpenAI routes. */
export abstract class HttpEngineAdapter implements EngineAdapter {
  abstract readonly dialect: EngineDialect;
  protected abstract readonly intervals: StreamIntervals;
  protected readonly http: EngineHttp;
  protected readonly routes: EngineRoutes;
  private modelName?: Promise<string>;
  private readonly memory: EngineMemory = {};
  private counted: { atMs: number; answer: Promise<number | undefined> } | undefined;
  protected readonly stopTokens: StopTokens;
  private readonly withheld: WithheldText;
  private readonly decode: Decode = (tokenIds, timeoutMs) => this.stopTokens.decode(tokenIds, timeoutMs);

  constructor(
    url: string,
    protected readonly options: EngineAdapterOptions = {},
  ) {
    this.http = new EngineHttp(url, options);
    this.routes = new EngineRoutes(this.http);
    this.stopTokens = new StopTokens(this.http, () => this.model());
    this.withheld = new WithheldText(this.decode);
  }

  get url(): string {
    return this.http.baseUrl;
  }

  abstract probe(signal?: AbortSignal): Promise<EngineDescription>;
  abstract abort(engineRequestId: string): Promise<boolean>;
  abstract report(): Promise<EngineReport>;
  abstract pause(mode: PauseMode, timeoutMs?: number): Promise<void>;
  abstract resume(): Promise<void>;
  abstract resetPrefixCache(timeoutMs?: number): Promise<void>;

  closeSession(_sessionId: string, _timeoutMs?: number): Promise<void> {
    return this.cannot('close sessions');
  }

  async health(signal?: AbortSignal): Promise<void> {
    await this.requireHealthy('/health', signal);
  }

  canParseChats(): Promise<boolean> {
    return Promise.resolve(false);
  }

  parseChat(_chat: GeneratedChat): Promise<Record<string, unknown>> {
    return this.cannot('parse the tokens of a chat');
  }

  forward({ method, path, body, timeoutMs }: ForwardedCall): Promise<{ status: number; text: string }> {
    return this.http.call(method, path, body, undefined, timeoutMs);
  }

  async generate(request: GenerationRequest, options: GenerateOptions = {}): Promise<GenerationResult> {
    const plan = planAttempt(request, await this.promptTokenIds(request, options.signal));
    const { resumedBy } = plan;
    options.onPlan?.({ resumedBy });
    if (plan.kind === 'exhausted') return { text: '', tokenCount: 0, finishReason: 'length', resumedBy };
    if (options.signal?.aborted) return { text: '', tokenCount: 0, finishReason: 'aborted', resumedBy };
    try {
      return await this.intervals.run(() => this.runPlan(request, plan, options));
    } catch (error) {
      const fitted = await fitBudget(request, plan, error as Error, (prompt) => this.tokenize(prompt, options.signal));
      if (fitted === undefined) throw error;
      if (fitted.budget >= 1) return this.runPlan(request, fitted, options);
      // The prompt alone fills the context, so that no token can be generated.
      if (resumedBy === undefined) throw error;
      return { text: '', tokenCount: 0, finishReason: 'length', resumedBy };
    }
  }

  private async runPlan(request: GenerationRequest, plan: RunPlan, options: GenerateOptions) {
    const { engineFields: given } = request.prompt;
    const engineFields = given && toDialect(this.dialect, given);
    const asked = given === undefined ? request : { ...request, prompt: { ...request.prompt, engineFields } };
    const { path, reader, shorten, body, stop } = await this.route(asked, plan);
    const wholeBody = engineFields === undefined ? body : withCallerFields(body, engineFields);
    const interval = askedInterval(wholeBody);
    const call: StreamCall = {
      path,
      reader,
      shorten,
      stop,
      body: wholeBody,
      interval,
      headers: { 'x-request-id': request.engineRequestId },
      resumedBy: plan.resumedBy,
      abortById: () => this.abort(request.engineRequestId).catch(() => undefined),
      memory: this.memory,
      countEngineTokens: () => this.countRecently(),
    };
    const run = (all: GenerateOptions) =>
      this.intervals.watch(interval, all, (watched) => streamGeneration(this.http, call, this.options, watched));
    const continued = {
      made: plan.resumedBy === 'tokens' ? request.made : undefined,
      sendsStops: this.withheld.sends(stop),
      decode: this.decode,
    };
    const runWhole = (all: GenerateOptions) => this.withheld.complete(stop, all, run);
    return continueText(continued, options, runWhole).catch((error: unknown) => {
      throw engineFields?.model === undefined ? error : asUnknownModel(error);
    });
  }

  pass(request: PassedRequest, options: PassOptions): Promise<PassedAnswer> {
    const abortById = () => this.abort(request.engineRequestId).catch(() => undefined);
    return passCall(this.http, this.dialect, request, this.options, options, abortById);
  }

  /** Tokens that the engine has counted since its start; undefined: it reports no count. */
  protected countTokens(): Promise<number | undefined> {
    return Promise.resolve(undefined);
  }

  /** {@link countTokens}, for all silent streams of the engine together. Never throws. */
  private countRecently(): Promise<number | undefined> {
    if (this.counted === undefined || performance.now() - this.counted.atMs > COUNT_FRESH_MS) {
      this.counted = { atMs: performance.now(), answer: this.countTokens().catch(() => undefined) };
    }
    return this.counted.answer;
  }

  /** Token ids of a text or messages as the engine reads them; undefined without a report of the engine. */
  protected tokenize(_prompt: Prompt, _signal?: StopSignal): Promise<number[] | undefined> {
    return Promise.resolve(undefined);
  }

  /** Token ids of a prompt to resume; undefined without an answer of the engine: then text is resumed. */
  private async promptTokenIds(request: GenerationRequest, signal?: StopSignal): Promise<number[] | undefined> {
    if (signal?.aborted || !couldResumeByTokens(request)) return undefined;
    return this.tokenize(request.prompt, signal).catch(() => undefined);
  }

  /** The token ids of an answer of `/tokenize`. */
  protected async askTokenIds(body: object, signal?: StopSignal): Promise<number[] | undefined> {
    const { status, text } = await this.http.call('POST', '/tokenize', body, signal);
    const tokens = status === 200 ? parseObject(text)?.tokens : undefined;
    return Array.isArray(tokens) && tokens.every(Number.isSafeInteger) ? (tokens as number[]) : undefined;
  }

  /** The call that starts this attempt with the names of the dialect. */
  protected abstract route(request: GenerationRequest, plan: RunPlan): Promise<RouteCall>;

  /** `/v1/chat/completions`, for messages. */
  protected chatRoute(
    messages: ChatMessage[],
    continued: boolean,
    body: Record<string, unknown>,
    sampling: SamplingParameters | undefined,
  ): RouteCall {
    return {
      path: '/v1/chat/completions',
      reader: new OpenAiChunkReader(),
      body: {
        ...body,
        messages,
        stream: true,
        ...(continued && { add_generation_prompt: false, continue_final_message: true }),
        ...(sampling?.logprobs && { logprobs: true }),
      },
    };
  }

  /**
   * `/v1/completions`, for text and token ids.
   * @param topLogprobs number of alternatives of each token, if a chat is continued by this route
   */
  protected completionRoute(
    prompt: string | number[],
    body: Record<string, unknown>,
    sampling: SamplingParameters | undefined,
    topLogprobs: unknown = 0,
  ): RouteCall {
    return {
      path: '/v1/completions',
      reader: new OpenAiChunkReader(),
      body: { ...body, prompt, stream: true, ...(sampling?.logprobs && { logprobs: topLogprobs }) },
    };
  }

  /** Model in requests: from the options, or the first model of the engine. */
  protected model(): Promise<string> {
    if (this.options.model !== undefined) return Promise.resolve(this.options.model);
    this.modelName ??= this.listModel().then(
      (card) => card.id,
      (error: unknown) => {
        this.modelName = undefined;
        throw error;
      },
    );
    return this.modelName;
  }

  /**
   * First model of `/v1/models`, or the model of the options.
   * @throws BroomwagonError ENGINE_PROTOCOL if the answer is no such list, ENGINE_REJECTED if it lacks the model of the
   *   options
   */
  protected async listModel(signal?: AbortSignal): Promise<ModelCard & { models: string[] }> {
    const { status, text } = await this.http.call('GET', '/v1/models', undefined, signal);
    const cards = status === 200 ? readModelCards(text) : undefined;
    if (cards === undefined) throw this.otherDialect('/v1/models', status, text);
    const { model = cards[0]!.id } = this.options;
    const card = cards.find(({ id }) => id === model);
    const models = toModelList(cards);
    if (card !== undefined) return { ...card, models };
    const message = `${this.url} does not serve the model ${model}; it serves ${models.join(', ')}`;
    throw new BroomwagonError('ENGINE_REJECTED', message);
  }

  /** Models and adapters that the engine lists; undefined if the answer is no list. Never throws. */
  protected listedModels(signal?: AbortSignal): Promise<string[] | undefined> {
    return this.listModel(signal).then(
      ({ models }) => models,
      () => undefined,
    );
  }

  /** Calls a route that controls the engine. ENGINE_REJECTED only if the engine has no such route. */
  protected async control(path: string, body?: unknown, timeoutMs?: number): Promise<string> {
    const { status, text } = await this.http.call('POST', path, body, undefined, timeoutMs);
    if (status >= 200 && status < 300) return text;
    throw new BroomwagonError(
      NO_ROUTE.has(status) ? 'ENGINE_REJECTED' : 'ENGINE_ERROR',
      `${this.url}${path} answered ${status}: ${quote(text)}`,
      { details: { status } },
    );
  }

  protected cannot(what: string): Promise<never> {
    return Promise.reject(
      new BroomwagonError('ENGINE_REJECTED', `${this.dialect} engines cannot ${what} (${this.url})`),
    );
  }

  protected otherDialect(path: string, status: number, said: string): BroomwagonError {
    return new BroomwagonError(
      'ENGINE_PROTOCOL',
      `${this.url}${path} does not answer as ${this.dialect}: status ${status}, ${quote(said) || 'no body'}`,
    );
  }

  protected async requireHealthy(path: string, signal?: AbortSignal): Promise<void> {
    const { status, text } = await this.http.call('GET', path, undefined, signal);
    if (status === 200) return;
    const refuses = status >= 400 && status < 500;
    const message = `${this.url}${path} answered ${status}: ${quote(text)}`;
    throw new BroomwagonError(refuses ? 'ENGINE_REJECTED' : 'ENGINE_ERROR', message, { details: { status } });
  }
}
