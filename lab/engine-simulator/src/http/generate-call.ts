import type { IncomingMessage } from 'node:http';
import { findPromptFault, textOfPrompt, type ChatMessage } from '@broomwagon/contracts';
import type { WirePrompt } from '../tokens/sample-identity';
import { RefusedError } from './answers';
import { wholeNumber } from './request-body';

/** Format of the answer of a generate route. */
export type AnswerForm = 'completion' | 'chat' | 'tokens' | 'sglang';

/** What a release does with the field `stream_interval`. */
export type IntervalRule = 'taken' | 'ignored' | 'refused' | 'failed';

/** A parsed generate request of any dialect. */
export interface GenerateCall {
  form: AnswerForm;
  prompt: WirePrompt;
  /** Id given by the client, or a generated one. */
  id: string;
  stream: boolean;
  /** Most tokens of the response. Absent: as many as fit. */
  maxTokens?: number;
  minTokens: number;
  seed?: number;
  cacheSalt?: string;
  /** SGLang: session that uses the prompt in the prefix cache. */
  sessionId?: string;
  logprobs: boolean;
  /** Position of the prompt from which the answer has the log probabilities of its tokens; absent: none. */
  promptLogprobsFrom?: number;
  /** SGLang: whether log probabilities have the texts of their tokens. */
  hasTokenTexts?: boolean;
  /** Number of alternatives for each token. */
  topLogprobs: number;
  /** Name of the tool that a chat calls: the first given tool. The response is its arguments. */
  tool?: string;
  tokenIds: boolean;
  /** Whether the answer has the experts of each token, and the first row of them. */
  hasExperts?: boolean;
  expertsFrom?: number;
  /** Texts that end the response; only behaviours of the zoo obey them. */
  stop?: string[];
  /** Whether the response keeps the stop text. */
  keepsStop?: boolean;
  /** Whether the stream has a usage object at its end, and below in every chunk. */
  usage: boolean;
  continuousUsage: boolean;
  /** Tokens of one event after the first; absent: as many as there are. */
  streamInterval?: number;
}

/** Budget of a completion that names none, tokens. */
const COMPLETION_TOKENS = 16;

let idSequence = 0;

function requestId(request: IncomingMessage, given: unknown): string {
  const header = request.headers['x-request-id'];
  if (typeof given === 'string' && given !== '') return given;
  return typeof header === 'string' && header !== '' ? header : `simulated-${++idSequence}`;
}

/** Parses a call of `/v1/completions` or `/v1/chat/completions`. */
export function readOpenAiCall(
  request: IncomingMessage,
  body: Record<string, unknown>,
  form: 'completion' | 'chat',
  takesTokenIds: boolean,
  interval: IntervalRule = 'ignored',
): GenerateCall {
  const streamInterval = readInterval(body, interval, 1);
  if ((body.n ?? 1) !== 1) throw new RefusedError(400, 'n must be 1: one request is one sample');
  const scored = takesTokenIds && form === 'completion' ? wholeNumber(body, 'prompt_logprobs', 0) : undefined;
  if (scored !== undefined && body.stream === true) {
    throw new RefusedError(400, '`prompt_logprobs` are not available when `stream=True`.');
  }
  const usage = (body.stream_options ?? {}) as { include_usage?: boolean; continuous_usage_stats?: boolean };
  return {
    form,
    prompt: form === 'chat' ? chatPrompt(body) : completionPrompt(body.prompt, takesTokenIds),
    id: requestId(request, body.request_id ?? body.rid),
    stream: body.stream === true,
    maxTokens:
      wholeNumber(body, 'max_completion_tokens', 1) ??
      wholeNumber(body, 'max_tokens', 1) ??
      (form === 'completion' ? COMPLETION_TOKENS : undefined),
    minTokens: wholeNumber(body, 'min_tokens', 0) ?? 0,
    seed: wholeNumber(body, 'seed', Number.MIN_SAFE_INTEGER),
    cacheSalt: typeof body.cache_salt === 'string' ? body.cache_salt : undefined,
    sessionId: typeof body.session_id === 'string' ? body.session_id : undefined,
    logprobs: body.logprobs !== undefined && body.logprobs !== null && body.logprobs !== false,
    promptLogprobsFrom: scored === undefined ? undefined : 0,
    topLogprobs: wholeNumber(body, form === 'chat' ? 'top_logprobs' : 'logprobs', 0) ?? 0,
    tool: form === 'chat' ? findToolName(body) : undefined,
    tokenIds: takesTokenIds && body.return_token_ids === true,
    stop: stopTexts(body.stop),
    keepsStop: body.include_stop_str_in_output === true,
    usage: usage.include_usage === true,
    continuousUsage: usage.continuous_usage_stats === true,
    streamInterval,
  };
}

/**
 * Reads the field `stream_interval`. As in the real engines, an answer names all fields with a wrong type, and a field
 * that the release does not know is not read.
 */
function readInterval(fields: Record<string, unknown>, rule: IntervalRule, least: number): number | undefined {
  const { stream_interval: interval, temperature } = fields;
  const isGiven = interval !== undefined && interval !== null;
  if (isGiven && rule === 'refused') throw new RefusedError(400, "Unexpected keyword argument 'stream_interval'");
  if (isGiven && rule === 'failed') throw new RefusedError(500, 'Internal Server Error');
  const isInterval = Number.isInteger(interval) && Number(interval) >= least;
  const faults = [
    ...(isGiven && rule === 'taken' && !isInterval
      ? [`stream_interval must be a whole number of at least ${least}`]
      : []),
    ...(temperature === undefined || temperature === null || (typeof temperature === 'number' && temperature >= 0)
      ? []
      : ['temperature must be a number of at least 0']),
  ];
  if (faults.length > 0) throw new RefusedError(400, faults.join('; '));
  return isGiven && rule === 'taken' ? Number(interval) : undefined;
}

function stopTexts(stop: unknown): string[] | undefined {
  return typeof stop === 'string'
    ? [stop]
    : Array.isArray(stop)
      ? stop.filter((text) => typeof text === 'string')
      : undefined;
}

/** Name of the tool that a chat calls. */
export function findToolName({ tools, tool_choice: choice }: Record<string, unknown>): string | undefined {
  const [tool] = (Array.isArray(tools) && choice !== 'none' ? tools : []) as { function?: { name?: string } }[];
  return tool?.function?.name;
}

/** Parses a call of SGLang's `/generate`. */
export function readSglangCall(
  request: IncomingMessage,
  body: Record<string, unknown>,
  interval: IntervalRule,
): GenerateCall {
  const sampling = (body.sampling_params ?? {}) as Record<string, unknown>;
  const streamInterval = readInterval(sampling, interval, Number.MIN_SAFE_INTEGER);
  const prompt = body.input_ids ?? body.text;
  // As in SGLang, -1 means no token of the prompt.
  const from = wholeNumber(body, 'logprob_start_len', -1) ?? -1;
  return {
    form: 'sglang',
    prompt: completionPrompt(prompt, true),
    id: requestId(request, body.rid),
    stream: body.stream === true,
    maxTokens: sampling.max_new_tokens === null ? undefined : (wholeNumber(sampling, 'max_new_tokens', 1) ?? 128),
    minTokens: wholeNumber(sampling, 'min_new_tokens', 0) ?? 0,
    seed: wholeNumber(sampling, 'sampling_seed', Number.MIN_SAFE_INTEGER),
    cacheSalt: typeof body.extra_key === 'string' ? body.extra_key : undefined,
    sessionId: typeof body.session_id === 'string' ? body.session_id : undefined,
    logprobs: body.return_logprob === true,
    promptLogprobsFrom: body.return_logprob === true && from >= 0 ? from : undefined,
    hasTokenTexts: body.return_text_in_logprobs === true,
    topLogprobs: 0,
    tokenIds: true,
    stop: stopTexts(sampling.stop),
    keepsStop: sampling.no_stop_trim === true,
    hasExperts: body.return_routed_experts === true,
    expertsFrom: wholeNumber(body, 'routed_experts_start_len', 0),
    usage: true,
    continuousUsage: true,
    streamInterval,
  };
}

/** Parses a call of vLLM's `/inference/v1/generate`, which has experts if the engine reports them. */
export function readTokenCall(
  request: IncomingMessage,
  body: Record<string, unknown>,
  interval: IntervalRule,
): GenerateCall {
  const { sampling_params: sampling, token_ids: prompt, ...others } = body;
  const fields = { ...others, ...(sampling as Record<string, unknown>), prompt, return_token_ids: true };
  return { ...readOpenAiCall(request, fields, 'completion', true, interval), form: 'tokens', hasExperts: true };
}

/** Reads a prompt. Throws RefusedError 400 for anything but text or, with `takesTokenIds`, token ids. */
export function completionPrompt(prompt: unknown, takesTokenIds: boolean): WirePrompt {
  if (typeof prompt === 'string') return { kind: 'text', text: prompt };
  const ids = Array.isArray(prompt) && prompt.every((id) => Number.isInteger(id) && (id as number) >= 0);
  if (takesTokenIds && ids) return { kind: 'tokenIds', tokenIds: prompt as number[] };
  throw new RefusedError(400, takesTokenIds ? 'prompt must be a string or token ids' : 'prompt must be a string');
}

/**
 * Reads the messages of a chat; parts other than text are ignored. Throws RefusedError 400 for anything but messages of
 * the OpenAI API.
 */
export function chatPrompt(body: Record<string, unknown>): WirePrompt {
  const { messages } = body;
  const fault = findPromptFault({ messages });
  if (fault) throw new RefusedError(400, `${fault.field || 'messages'}: ${fault.reason}`);
  const texts = (messages as ChatMessage[]).map((message) => ({
    role: message.role,
    content: textOfPrompt({ messages: [message] }),
  }));
  return { kind: 'messages', messages: texts, continued: body.continue_final_message === true };
}
