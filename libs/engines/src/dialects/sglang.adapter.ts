import { isMultimodal, type PauseMode, type Prompt } from '@broomwagon/contracts';
import type { EngineAdapterOptions, EngineDescription, EngineReport, GenerationRequest } from '../engine-adapter';
import type { StopSignal } from '../stop-signal';
import type { TextForm } from '../stream/chunk-text';
import { SglangChunkReader } from '../stream/sglang-chunk-reader';
import { HttpEngineAdapter, type RouteCall, type RunPlan } from './http-adapter';
import { countTokens, readMetrics, getProcessStart } from './prometheus';
import { saltedFields } from './cache-salt';
import { SAMPLING_FIELDS } from './request-fields';
import { toGrammar, wireSampling } from './sampling';
import { readSglangLoad } from './sglang-load';
import { SGLANG_INTERVALS, StreamIntervals } from './stream-intervals';
import { isAtLeast, NO_VERSION, weightNumber } from './versions';

/** Longest line of a stream: a chunk may repeat all tokens so far, logprobs included. */
const SGLANG_MAX_LINE_BYTES = 64 * 1_048_576;

/** Sampling parameters for which the chat route takes the defaults of the model unless the request names them. */
const MODEL_DEFAULTS = ['temperature', 'topP', 'topK', 'minP', 'repetitionPenalty'] as const;
/** Fields of a chat that are sampling parameters of `/generate`. */
const CHAT_SAMPLING = ['ignore_eos', 'skip_special_tokens', 'no_stop_trim', 'logit_bias', 'stream_interval'];
/** Fields of a chat that `/tokenize` reads, or that `/generate` has too. */
// prettier-ignore
const TOKEN_IN_FIELDS = new Set([
  ...CHAT_SAMPLING, 'model', 'chat_template_kwargs', 'reasoning_effort', 'separate_reasoning', 'lora_path',
  'session_id', 'extra_key', 'cache_salt', 'priority', 'return_routed_experts', 'return_text_in_logprobs', 'user',
]);
/**
 * First version that surely gives `extra_key` and `cache_salt` to the cache: from 0.5.3 until the fix of
 * https://github.com/sgl-project/sglang/pull/23300 (April 2026) the scheduler did not get these fields.
 */
const CACHE_SALT_SINCE = [0, 5, 12];
/** Time for which the route of chats is chosen by one description of the engine, milliseconds. */
const INFO_FRESH_MS = 60_000;

/** SGLang's own server: `/generate` for text and token ids, its OpenAI route for messages. */
export class SglangAdapter extends HttpEngineAdapter {
  readonly dialect = 'sglang';
  protected override readonly intervals = new StreamIntervals(this.http, SGLANG_INTERVALS, () =>
    this.serverInfo().then((info) => info?.version),
  );
  /** Form of the texts in chunks; known after the engine has described itself. */
  private textForm?: TextForm;
  /** Server info of the engine, with the time at which it was read. */
  private about?: { info: Record<string, unknown>; atMs: number };

  constructor(url: string, options: EngineAdapterOptions = {}) {
    super(url, { maxLineBytes: SGLANG_MAX_LINE_BYTES, ...options });
  }

  async probe(signal?: AbortSignal): Promise<EngineDescription> {
    const info = await this.serverInfo(signal);
    if (!info) {
      const { status, text } = await this.http.call('GET', '/get_server_info', undefined, signal);
      throw this.otherDialect('/get_server_info', status, text);
    }
    const startedAt = getProcessStart(readMetrics((await this.http.getText('/metrics', signal)) ?? ''));
    const [canPause, canFlush, canClose, tokenize] = await Promise.all(
      ['/pause_generation', '/flush_cache', '/close_session', '/tokenize'].map((path) => this.routes.has(path, signal)),
    );
    const model = String(info.served_model_name ?? info.model_path);
    return {
      model: this.options.model ?? model,
      models: (await this.listedModels(signal)) ?? [model],
      instanceId:
        typeof info.instance_id === 'string'
          ? info.instance_id
          : startedAt === undefined
            ? undefined
            : `started-${startedAt}`,
      weightVersion: await this.weightVersion(info, signal),
      capabilities: {
        version: typeof info.version === 'string' ? info.version : undefined,
        maxModelTokens: firstNumber(info.context_length, info.max_req_input_len, info.max_total_num_tokens),
        tokenIdsIn: true,
        tokenIdsOut: true,
        logprobs: true,
        abortById: true,
        abortOnDisconnect: true,
        loadReport: true,
        prefixCacheReset: canFlush,
        sessionClose: canClose && keepsSessions(info),
        cacheSalt: typeof info.version === 'string' && isAtLeast(info.version, CACHE_SALT_SINCE),
        tokenize,
        streamInterval: await this.intervals.isTaken(),
        pauseModes: canPause ? (['abort', 'keep'] satisfies PauseMode[]) : [],
        dataParallelRanks: Math.max(1, firstNumber(info.dp_size) ?? 1),
      },
    };
  }

  /** SGLang matches ids by prefix; all ids have one length, so only this request matches. */
  abort(engineRequestId: string): Promise<boolean> {
    return this.routes.abort('/abort_request', { rid: engineRequestId });
  }

  /** Reads the report. The metrics, if they are on, are used for the start and the token counts only. */
  async report(): Promise<EngineReport> {
    const [load, page, weightVersion, models] = await Promise.all([
      readSglangLoad(this.http).catch(() => undefined),
      this.http.getText('/metrics').catch(() => undefined),
      this.saidVersion(),
      this.listedModels(),
    ]);
    const metrics = readMetrics(page ?? '');
    const tokens = countTokens(metrics, 'sglang');
    return { load: load && { ...load, tokens }, startedAtSeconds: getProcessStart(metrics), weightVersion, models };
  }

  protected override async countTokens(): Promise<number | undefined> {
    return countTokens(readMetrics((await this.http.getText('/metrics')) ?? ''), 'sglang');
  }

  /** SGLang has no mode `wait`. Its third mode, `retract`, computes kept requests again, and is not used. */
  async pause(mode: PauseMode, timeoutMs?: number): Promise<void> {
    if (mode === 'wait') return this.cannot('pause by waiting');
    await this.control('/pause_generation', { mode: mode === 'keep' ? 'in_place' : mode }, timeoutMs);
  }

  async resume(): Promise<void> {
    await this.control('/continue_generation', {});
  }

  async resetPrefixCache(timeoutMs?: number): Promise<void> {
    await this.control('/flush_cache', undefined, timeoutMs);
  }

  override async closeSession(sessionId: string, timeoutMs?: number): Promise<void> {
    await this.control('/close_session', { session_id: sessionId }, timeoutMs);
  }

  /** Since 0.5.12, the token ids of messages are as the chat route renders them. */
  protected override async tokenize(
    { text, messages, engineFields }: Prompt,
    signal?: StopSignal,
  ): Promise<number[] | undefined> {
    const prompt = messages === undefined ? { prompt: text } : { ...engineFields, messages };
    return this.askTokenIds({ model: await this.model(), ...prompt }, signal);
  }

  /**
   * Token ids of a chat that `/generate` answers as the chat route does, with token ids by which a cut chat is
   * continued.
   * @returns undefined if only the chat route can answer the chat
   */
  private async rendered({ prompt, sampling }: GenerationRequest): Promise<number[] | undefined> {
    const { model = '', ...fields } = prompt.engineFields ?? {};
    // An adapter may be named as `model:adapter`.
    const isPlain = Object.keys(fields).every((name) => TOKEN_IN_FIELDS.has(name)) && !String(model).includes(':');
    if (!isPlain || isMultimodal(prompt)) return undefined;
    if (this.about === undefined || Date.now() - this.about.atMs > INFO_FRESH_MS) {
      await this.serverInfo().catch(() => undefined);
    }
    const { info = {} } = this.about ?? {};
    const isParsed = !isUnset(info.reasoning_parser) && fields.separate_reasoning !== false;
    // A template that is chosen by name may have its own stop texts.
    const hasStops = !isUnset(info.chat_template) && !String(info.chat_template).endsWith('.jinja');
    const isSampledAlike =
      info.sampling_defaults === 'openai' || MODEL_DEFAULTS.every((name) => sampling?.[name] !== undefined);
    if (isParsed || hasStops || !isSampledAlike) return undefined;
    return this.tokenize(prompt).catch(() => undefined);
  }

  protected async route(request: GenerationRequest, plan: RunPlan): Promise<RouteCall> {
    const { prompt } = plan;
    if (!('messages' in prompt)) {
      return this.generateRoute(
        request,
        plan,
        'text' in prompt ? { text: prompt.text } : { input_ids: prompt.tokenIds },
      );
    }
    const promptTokenIds = prompt.continued ? undefined : await this.rendered(request);
    if (promptTokenIds !== undefined) {
      return this.generateRoute(request, plan, { input_ids: promptTokenIds }, promptTokenIds);
    }
    // The OpenAI route has other names for two of the parameters.
    const {
      sampling_seed: seed,
      min_new_tokens: minTokens,
      ...others
    } = wireSampling('sglang', request.sampling, plan.minTokens);
    const stop = await this.stopTokens.includedStop(request);
    const body = {
      ...others,
      ...(stop && { no_stop_trim: true }),
      ...(seed !== undefined && { seed }),
      ...(minTokens !== undefined && { min_tokens: minTokens }),
      model: await this.model(),
      rid: request.engineRequestId,
      ...saltedFields('cache_salt', request.cacheSalt, request.prompt.engineFields),
      ...(await this.sessionField(request)),
      max_tokens: plan.budget,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    };
    return { ...this.chatRoute(prompt.messages, prompt.continued, body, request.sampling), stop };
  }

  /** @param promptTokenIds token ids of messages, which are reported as the ids of the prompt */
  private async generateRoute(
    request: GenerationRequest,
    { budget, minTokens }: RunPlan,
    prompt: { text: string } | { input_ids: number[] },
    promptTokenIds?: number[],
  ): Promise<RouteCall> {
    if (this.textForm === undefined) await this.serverInfo();
    const { engineRequestId, sampling } = request;
    const { engineFields = {} } = request.prompt;
    const stop = await this.stopTokens.includedStop(request);
    const fields: Record<string, unknown> = { max_new_tokens: budget, ...toGrammar(engineFields.response_format) };
    for (const name of SAMPLING_FIELDS.sglang!) {
      if (engineFields[name] !== undefined) fields[name] = engineFields[name];
    }
    if (stop) fields.no_stop_trim = true;
    const interval = await this.intervals.field(request);
    const body: Record<string, unknown> = {
      rid: engineRequestId,
      stream: true,
      sampling_params: Object.assign(fields, wireSampling('sglang', sampling, minTokens), interval),
      ...prompt,
    };
    Object.assign(body, saltedFields('extra_key', request.cacheSalt, engineFields), await this.sessionField(request));
    if (sampling?.logprobs) body.return_logprob = true;
    return { path: '/generate', stop, reader: new SglangChunkReader(this.textForm, promptTokenIds), body };
  }

  /** The field by which the engine knows whose KV cache it gives up when a session is closed. */
  private async sessionField({ sessionId }: GenerationRequest): Promise<{ session_id?: string }> {
    if (sessionId === undefined) return {};
    const info = this.about?.info ?? (await this.serverInfo().catch(() => undefined));
    return info !== undefined && keepsSessions(info) ? { session_id: sessionId } : {};
  }

  /** Weight version, which is a text: `default` until the weights are changed. Older versions have none. */
  private async weightVersion(info: Record<string, unknown>, signal?: AbortSignal): Promise<number | undefined> {
    return weightNumber(info.weight_version ?? (await this.http.getJson('/get_model_info', signal))?.weight_version);
  }

  /** Weight version for the report. Versions have two names for the route. */
  private async saidVersion(): Promise<number | undefined> {
    for (const path of ['/get_model_info', '/model_info']) {
      const said = (await this.http.getJson(path).catch(() => undefined))?.weight_version;
      if (said !== undefined) return weightNumber(said) ?? NO_VERSION;
    }
    return undefined;
  }

  /** Description of the engine by itself, if it has one. Versions have two names for the route. */
  private async serverInfo(signal?: AbortSignal): Promise<Record<string, unknown> | undefined> {
    for (const path of ['/get_server_info', '/server_info']) {
      const info = await this.http.getJson(path, signal);
      if (info && typeof info.model_path === 'string') {
        this.about = { info, atMs: Date.now() };
        // `stream_output` of older versions changes the token ids only.
        this.textForm = info.incremental_streaming_output === true ? 'new' : 'whole';
        return info;
      }
    }
    return undefined;
  }
}

/** Whether the cache counts the sessions that use its entries; otherwise a close changes nothing. */
function keepsSessions(info: Record<string, unknown>): boolean {
  return info.enable_session_radix_cache === true;
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === null;
}

function firstNumber(...values: unknown[]): number | undefined {
  return values.find((value): value is number => typeof value === 'number');
}
