import { BroomwagonError, PAUSE_MODES, type PauseMode, type Prompt } from '@broomwagon/contracts';
import type { EngineDescription, EngineLoad, EngineReport, GeneratedChat, GenerationRequest } from '../engine-adapter';
import type { StopSignal } from '../stop-signal';
import { parseObject } from '../http/engine-http';
import { HttpEngineAdapter, type RouteCall, type RunPlan } from './http-adapter';
import { OpenAiChunkReader } from '../stream/openai-chunk-reader';
import { withoutTokenNames } from '../stream/token-names';
import { VllmAborts } from './vllm-aborts';
import { countTokens, readMetrics, getProcessStart, type Metric } from './prometheus';
import { saltedFields } from './cache-salt';
import { wireSampling } from './sampling';
import { StreamIntervals, VLLM_INTERVALS } from './stream-intervals';
import { isAtLeast, NO_VERSION, weightNumber } from './versions';

/** First version whose streams can carry token ids (`return_token_ids`). */
const TOKEN_IDS_SINCE = [0, 10, 2];
/** First version with `cache_salt` on all routes and without the engine V0, which refuses the field. */
const CACHE_SALT_SINCE = [0, 11, 0];

const PARSE_PATH = '/v1/chat/completions/derender';
/** Streams of this route have routed experts; streams of completions have none. */
const TOKEN_PATH = '/inference/v1/generate';
/** Sampling parameters that the gateway does not read. */
// prettier-ignore
const SAMPLING_FIELDS = [
  'allowed_token_ids', 'bad_words', 'extra_args', 'frequency_penalty', 'ignore_eos', 'include_stop_str_in_output',
  'logit_bias', 'presence_penalty', 'repetition_detection', 'skip_special_tokens', 'spaces_between_special_tokens',
  'stream_interval', 'structured_outputs', 'thinking_token_budget',
];

export class VllmAdapter extends HttpEngineAdapter {
  readonly dialect = 'vllm';
  protected override readonly intervals = new StreamIntervals(
    this.http,
    VLLM_INTERVALS,
    async () => (await this.http.getJson('/version'))?.version,
  );
  private readonly aborts = new VllmAborts(this.routes);
  /** Start of an engine that has no route for its weights. */
  private withoutWeightInfo?: number;

  async probe(signal?: AbortSignal): Promise<EngineDescription> {
    const answer = await this.http.call('GET', '/version', undefined, signal);
    const about = parseObject(answer.text);
    if (answer.status !== 200 || typeof about?.version !== 'string') {
      throw this.otherDialect('/version', answer.status, answer.text);
    }
    const model = await this.listModel(signal);
    const metrics = readMetrics((await this.http.getText('/metrics', signal)) ?? '');
    const [canPause, canReset, tokenize] = await Promise.all(
      ['/pause', '/reset_prefix_cache', '/tokenize'].map((path) => this.routes.has(path, signal)),
    );
    const canAbort = await this.aborts.probe(signal);
    const saidWeights = saidVersion(await this.http.call('GET', '/weight_info', undefined, signal));
    const startedAt = getProcessStart(metrics);
    return {
      model: model.id,
      models: model.models,
      instanceId:
        typeof about.instance_id === 'string'
          ? about.instance_id
          : startedAt === undefined
            ? undefined
            : `started-${startedAt}`,
      weightVersion: saidWeights === NO_VERSION ? undefined : saidWeights,
      capabilities: {
        version: about.version,
        maxModelTokens: model.maxModelTokens,
        tokenIdsIn: true,
        tokenIdsOut: isAtLeast(about.version, TOKEN_IDS_SINCE),
        logprobs: true,
        abortById: canAbort,
        abortOnDisconnect: true,
        loadReport: metrics.has('vllm:num_requests_running'),
        prefixCacheReset: canReset,
        cacheSalt: isAtLeast(about.version, CACHE_SALT_SINCE),
        tokenize,
        streamInterval: await this.intervals.isTaken(),
        pauseModes: canPause ? [...PAUSE_MODES] : [],
        dataParallelRanks: Math.max(1, metrics.get('vllm:num_requests_running')?.labels.engine?.size ?? 1),
      },
    };
  }

  abort(engineRequestId: string): Promise<boolean> {
    return this.aborts.abort(engineRequestId);
  }

  /** Reads the report. Older versions, and engines without the development routes, do not report their weights. */
  async report(): Promise<EngineReport> {
    const [page, models] = await Promise.all([
      this.http.getText('/metrics').catch(() => undefined),
      this.listedModels(),
    ]);
    const metrics = readMetrics(page ?? '');
    const startedAtSeconds = getProcessStart(metrics);
    const isKnownWithout = startedAtSeconds !== undefined && this.withoutWeightInfo === startedAtSeconds;
    const answer = isKnownWithout ? undefined : await this.http.call('GET', '/weight_info').catch(() => undefined);
    if (answer?.status === 404) this.withoutWeightInfo = startedAtSeconds;
    return { load: toLoad(metrics), startedAtSeconds, weightVersion: saidVersion(answer), models };
  }

  protected override async countTokens(): Promise<number | undefined> {
    return countTokens(readMetrics((await this.http.getText('/metrics')) ?? ''), 'vllm');
  }

  async pause(mode: PauseMode, timeoutMs?: number): Promise<void> {
    await this.control(`/pause?mode=${mode}`, undefined, timeoutMs);
  }

  async resume(): Promise<void> {
    await this.control('/resume');
  }

  async resetPrefixCache(timeoutMs?: number): Promise<void> {
    const answer = await this.control('/reset_prefix_cache', undefined, timeoutMs);
    // Older versions answer with an empty body.
    if (parseObject(answer)?.success === false) {
      throw new BroomwagonError('ENGINE_ERROR', `${this.url} did not reset its prefix cache: requests use it`);
    }
  }

  /** The route is enabled only with `--enable-scale-out`. A call without a chat is refused otherwise, too. */
  override canParseChats(): Promise<boolean> {
    return this.routes.isEnabled(PARSE_PATH, {});
  }

  override async parseChat(chat: GeneratedChat): Promise<Record<string, unknown>> {
    const { prompt, promptTokenIds, tokenIds, finishReason } = chat;
    // Log probabilities are not parsed, and are not in the body.
    const { top_logprobs: _top, ...fields } = prompt.engineFields ?? {};
    const model = fields.model ?? (await this.model());
    const choice = { index: 0, token_ids: tokenIds, finish_reason: finishReason };
    const answer = await this.http.call('POST', PARSE_PATH, {
      model,
      generate_response: { request_id: 'parsed', choices: [choice], prompt_token_ids: promptTokenIds },
      prompt_tokens: promptTokenIds.length,
      chat_request: { ...fields, model, messages: prompt.messages },
    });
    if (answer.status !== 200) {
      throw new BroomwagonError('ENGINE_ERROR', `${this.url}${PARSE_PATH} answered ${answer.status}`);
    }
    const { choices } = (parseObject(answer.text) ?? {}) as { choices?: { message?: unknown }[] };
    const message = choices?.[0]?.message;
    if (!isMessage(message)) {
      throw new BroomwagonError('ENGINE_PROTOCOL', `${this.url}${PARSE_PATH} answered without a message of a chat`);
    }
    const { tool_calls: calls } = message;
    // The chat route then returns one tool call; the parse route returns all tool calls.
    if (fields.parallel_tool_calls === false && Array.isArray(calls)) message.tool_calls = calls.slice(0, 1);
    return finishReason === 'stop' ? this.withoutEndToken(message, chat, model) : message;
  }

  /** Removes the token that ended the response: only the parse route of vLLM keeps special tokens in the text. */
  private async withoutEndToken(
    message: Record<string, unknown>,
    { tokenIds, text }: GeneratedChat,
    model: unknown,
  ): Promise<Record<string, unknown>> {
    const answer = await this.http.call('POST', '/detokenize', { model, tokens: tokenIds.slice(-1) });
    const end = parseObject(answer.text)?.prompt;
    if (typeof end !== 'string') {
      throw new BroomwagonError('ENGINE_ERROR', `${this.url}/detokenize answered ${answer.status}`);
    }
    if (end === '' || text.endsWith(end)) return message;
    const parts = Object.entries(message).map(([name, part]) => {
      const isEnded = typeof part === 'string' && part.endsWith(end);
      return [name, isEnded ? part.slice(0, -end.length) : part];
    });
    return Object.fromEntries(parts) as Record<string, unknown>;
  }

  /** Token ids with the special tokens that the completion and chat routes add. */
  protected override async tokenize(
    { text, messages, engineFields }: Prompt,
    signal?: StopSignal,
  ): Promise<number[] | undefined> {
    const prompt = messages === undefined ? { prompt: text } : { messages };
    // The rendered prompt has tools and arguments of the chat template in it.
    return this.askTokenIds({ model: await this.model(), ...engineFields, ...prompt }, signal);
  }

  /** Budget of a call: by default a completion of vLLM has 16 tokens, unlike a chat. */
  private async computeBudget({ budget, prompt }: RunPlan): Promise<number> {
    if (Number.isFinite(budget) || !('tokenIds' in prompt)) return budget;
    const { maxModelTokens = Infinity } = await this.listModel();
    return Math.max(1, maxModelTokens - prompt.tokenIds.length);
  }

  /** Route with token ids and without texts; newer versions enable it only with `--enable-scale-out`. */
  private async tokenRoute(request: GenerationRequest, plan: RunPlan, tokenIds: number[]): Promise<RouteCall> {
    const { engineRequestId, sampling, cacheSalt, prompt } = request;
    const { engineFields = {} } = prompt;
    const named = SAMPLING_FIELDS.filter((name) => engineFields[name] !== undefined);
    return {
      path: TOKEN_PATH,
      reader: new OpenAiChunkReader(),
      body: {
        model: await this.model(),
        request_id: engineRequestId,
        ...saltedFields('cache_salt', cacheSalt, engineFields),
        token_ids: tokenIds,
        sampling_params: {
          ...Object.fromEntries(named.map((name) => [name, engineFields[name]])),
          ...wireSampling('vllm', sampling, plan.minTokens),
          ...(await this.intervals.field(request)),
          max_tokens: await this.computeBudget(plan),
          ...(sampling?.logprobs && { logprobs: 1 }),
        },
        stream: true,
        stream_options: { include_usage: true, continuous_usage_stats: true },
      },
    };
  }

  protected async route(request: GenerationRequest, plan: RunPlan): Promise<RouteCall> {
    const wantsExperts = request.prompt.engineFields?.return_routed_experts === true;
    if (wantsExperts && 'tokenIds' in plan.prompt && (await this.routes.isEnabled(TOKEN_PATH, {}))) {
      return this.tokenRoute(request, plan, plan.prompt.tokenIds);
    }
    const stop = await this.stopTokens.includedStop(request);
    const body = {
      ...wireSampling('vllm', request.sampling, plan.minTokens),
      ...(await this.intervals.field(request, 'messages' in plan.prompt)),
      ...(stop && { include_stop_str_in_output: true }),
      model: await this.model(),
      request_id: request.engineRequestId,
      ...saltedFields('cache_salt', request.cacheSalt, request.prompt.engineFields),
      max_tokens: await this.computeBudget(plan),
      return_token_ids: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    };
    if ('messages' in plan.prompt) {
      return { ...this.chatRoute(plan.prompt.messages, plan.prompt.continued, body, request.sampling), stop };
    }
    const prompt = 'text' in plan.prompt ? plan.prompt.text : plan.prompt.tokenIds;
    const alternatives = request.prompt.engineFields?.top_logprobs;
    const route = this.completionRoute(prompt, body, request.sampling, alternatives);
    const hasNames = alternatives !== undefined || request.prompt.messages !== undefined;
    return { ...route, stop, ...(!hasNames && { shorten: withoutTokenNames }) };
  }
}

/** Whether a value is an object without tool calls, or with a list of names with arguments. */
function isMessage(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { tool_calls: calls } = value as Record<string, unknown>;
  return calls === undefined || calls === null || (Array.isArray(calls) && calls.every(isToolCall));
}

function isToolCall(value: unknown): boolean {
  const called = (value as { function?: { name?: unknown; arguments?: unknown } | null } | null)?.function;
  return typeof called?.name === 'string' && typeof called.arguments === 'string';
}

/** Weight version in an answer; undefined if the answer is not about weights. */
function saidVersion(answer: { status: number; text: string } | undefined): number | undefined {
  const said = answer?.status === 200 ? parseObject(answer.text)?.weight_version : undefined;
  return said === undefined ? undefined : (weightNumber(said) ?? NO_VERSION);
}

/** Load of the engine; undefined if the page of metrics has none. */
function toLoad(metrics: Map<string, Metric>): EngineLoad | undefined {
  const running = metrics.get('vllm:num_requests_running')?.sum;
  if (running === undefined) return undefined;
  const kvUse = metrics.get('vllm:kv_cache_usage_perc') ?? metrics.get('vllm:gpu_cache_usage_perc');
  const preemptions = metrics.get('vllm:num_preemptions_total') ?? metrics.get('vllm:num_preemptions');
  return {
    running,
    waiting: metrics.get('vllm:num_requests_waiting')?.sum ?? 0,
    kvUse: kvUse?.max,
    kvTokens: computeKvTokens(metrics.get('vllm:cache_config_info')),
    preemptions: preemptions?.sum,
    tokens: countTokens(metrics, 'vllm'),
  };
}

/** Tokens in the KV cache, from a metric for each rank. Older releases have no `kv_cache_size_tokens`. */
function computeKvTokens(config: Metric | undefined): number | undefined {
  const least = (label: string): number => Math.min(...[...(config?.labels[label] ?? [])].map(Number));
  const tokens = [least('kv_cache_size_tokens'), least('num_gpu_blocks') * least('block_size')].find(
    (value) => Number.isFinite(value) && value > 0,
  );
  return tokens && tokens * config!.sum;
}
