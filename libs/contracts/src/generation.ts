import { IsArray, IsBoolean, IsNumber, IsOptional, IsString, Min } from 'class-validator';
import { LIMITS } from './limits';
import { IsWithin } from './rules';
import type { Integer } from './scalars';

const SAFE = Number.MAX_SAFE_INTEGER;
/** Largest token id of any vocabulary. */
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** One part of a message's content, as in the OpenAI API: text, an image by URL or data, or another kind. */
export interface ContentPart {
  /** Kind of the part: `text`, `image_url` or another kind that the engine accepts. */
  type: string;
  /** The text; needed for the type `text`. */
  text?: string;
  [field: string]: unknown;
}

/**
 * One message of a chat, as in the OpenAI API; further fields (`tool_calls`, `tool_call_id`, `name`) are passed on. The
 * content of a message with tool calls may be null or absent.
 */
export interface ChatMessage {
  /** Role: `system`, `user`, `assistant`, `tool` or another role that the engine accepts; not empty. */
  role: string;
  /** Content: a text, or a list of parts that is not empty. */
  content?: string | ContentPart[] | null;
  [field: string]: unknown;
}

/** Contents of a prompt payload: exactly one of text, messages and promptTokenIds. */
export interface Prompt {
  /** The prompt as a text, which the engine tokenizes; not empty. */
  text?: string;
  /** The prompt as a chat, to which the engine applies its template; not empty. */
  messages?: ChatMessage[];
  /** The prompt as token ids, each at least 0 and below 2^31; not empty. */
  promptTokenIds?: Integer[];
  /**
   * Further fields of the request to the engine, e.g. `tools`, `lora_path`, `image_data`; passed on unread. Fields that
   * Broomwagon sets are refused, e.g. the prompt, the budget, `n`. Further fields of the response are in `engineFields`
   * of the segments.
   */
  engineFields?: Record<string, unknown>;
}

/**
 * Sampling parameters, passed to the engine adapter, which refuses unknown names. Without `seed`, engines use their own
 * random numbers. With `seed`, each sample has a separate seed, which `sampleSeed` of libs/engines derives from `seed`,
 * job, group, sample index and token count.
 */
export class SamplingParameters {
  /** Temperature of the distribution, at least 0. */
  @IsOptional() @IsNumber() @Min(0) temperature?: number;
  /** Share of the probability that is sampled from, the most probable tokens first. */
  @IsOptional() @IsNumber() topP?: number;
  /** Number of most probable tokens that are sampled from. */
  @IsOptional() @IsWithin(-SAFE, SAFE) topK?: Integer;
  /** Minimum probability of a token, relative to the most probable one. */
  @IsOptional() @IsNumber() minP?: number;
  /** Makes samples reproducible. */
  @IsOptional() @IsWithin(-SAFE, SAFE) seed?: Integer;
  /** Texts that end the response. */
  @IsOptional() @IsArray() @IsString({ each: true }) stop?: string[];
  /** Token ids that end the response. */
  @IsOptional() @IsArray() @IsWithin(0, MAX_TOKEN_ID, { each: true }) stopTokenIds?: Integer[];
  /** Minimum tokens of the response. */
  @IsOptional() @IsWithin(-SAFE, SAFE) minTokens?: Integer;
  /** Penalty factor for repeated tokens; 1 = none. */
  @IsOptional() @IsNumber() repetitionPenalty?: number;
  /** Return the log probability of each token. */
  @IsOptional() @IsBoolean() logprobs?: boolean;
  /**
   * Tokens of one event of an engine that takes `stream_interval`: the first token comes at once, and what is left at
   * the end. Default: `streamInterval` of the pool; single tokens for a client that reads a stream, and for chats that
   * the engine parses.
   */
  @IsOptional() @IsWithin(1, LIMITS.maxTokens) streamInterval?: Integer;
}

/** Fields of a request to an engine that Broomwagon sets: prompt, budget, id, and form of the answer. */
// prettier-ignore
export const RESERVED_ENGINE_FIELDS: readonly string[] = [
  'prompt', 'messages', 'text', 'input_ids', 'input_embeds', 'continue_final_message', 'add_generation_prompt',
  'max_tokens', 'max_completion_tokens', 'max_new_tokens', 'n', 'best_of', 'use_beam_search', 'echo', 'request_id',
  'rid', 'stream', 'stream_options', 'return_token_ids', 'logprobs', 'return_logprob',
];

/** A fault of a value, with the field of the fault. */
export interface Fault {
  /** Path of the field, e.g. `messages.0.content`; empty for the whole value. */
  field: string;
  /** Reason, e.g. `must not be empty`. */
  reason: string;
}

type Check = (value: unknown) => boolean;
const isText: Check = (value) => typeof value === 'string';
const isTokenId: Check = (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_TOKEN_ID;
/** True for a JSON object; false for a list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const buildListCheck =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

/**
 * Finds the first fault of a prompt, except its size: no kind or several kinds, emptiness, a wrong type, a reserved
 * field.
 */
export function findPromptFault(prompt: object): Fault | undefined {
  const { text, messages, promptTokenIds, engineFields, ...others } = prompt as Record<string, unknown>;
  const unknown = Object.keys(others).find((field) => others[field] !== undefined);
  if (unknown !== undefined) return { field: unknown, reason: 'unknown field' };
  const kinds = [text, messages, promptTokenIds].filter((kind) => kind !== undefined);
  if (kinds.length !== 1) return { field: '', reason: 'exactly one of text, messages and promptTokenIds is needed' };
  if (text !== undefined && !isText(text)) return { field: 'text', reason: 'must be a string' };
  if (promptTokenIds !== undefined && !buildListCheck(isTokenId)(promptTokenIds)) {
    return { field: 'promptTokenIds', reason: 'must be a list of token ids' };
  }
  if (messages !== undefined && !Array.isArray(messages)) return { field: 'messages', reason: 'must be a list' };
  if ((kinds[0] as { length: number }).length === 0) return { field: '', reason: 'the prompt is empty' };
  for (const [index, message] of ((messages as unknown[] | undefined) ?? []).entries()) {
    const fault = findMessageFault(message);
    if (fault) return { ...fault, field: `messages.${index}${fault.field && `.${fault.field}`}` };
  }
  return engineFields === undefined ? undefined : findEngineFieldsFault(engineFields);
}

function findMessageFault(message: unknown): Fault | undefined {
  if (!isObject(message)) return { field: '', reason: 'must be an object with role and content' };
  const { role, content } = message;
  if (!isText(role) || role === '') return { field: 'role', reason: 'must be a text that is not empty' };
  if (content === undefined || content === null) {
    const says = Object.keys(message).some(
      (field) => field !== 'role' && field !== 'content' && message[field] !== null,
    );
    return says ? undefined : { field: 'content', reason: 'is missing' };
  }
  if (isText(content)) return undefined;
  if (!Array.isArray(content) || content.length === 0) {
    return { field: 'content', reason: 'must be a text, a list of parts, or null beside tool_calls' };
  }
  const wrong = content.findIndex(
    (part) => !isObject(part) || !isText(part.type) || (part.type === 'text' && !isText(part.text)),
  );
  return wrong < 0
    ? undefined
    : { field: `content.${wrong}`, reason: 'must be an object with a type, and text for type text' };
}

function findEngineFieldsFault(engineFields: unknown): Fault | undefined {
  if (!isObject(engineFields)) return { field: 'engineFields', reason: 'must be an object' };
  const reserved = Object.keys(engineFields).find((field) => RESERVED_ENGINE_FIELDS.includes(field));
  if (reserved !== undefined) return { field: `engineFields.${reserved}`, reason: 'is set by Broomwagon' };
  const { sampling_params: sampling } = engineFields;
  if (sampling === undefined) return undefined;
  if (!isObject(sampling)) return { field: 'engineFields.sampling_params', reason: 'must be an object' };
  const inner = Object.keys(sampling).find((field) => RESERVED_ENGINE_FIELDS.includes(field));
  return inner === undefined
    ? undefined
    : { field: `engineFields.sampling_params.${inner}`, reason: 'is set by Broomwagon' };
}

/** True when a prompt holds images, audio or other parts: then token ids alone are not the whole prompt. */
export function isMultimodal({ messages, engineFields = {} }: Prompt): boolean {
  if (['image_data', 'video_data', 'audio_data'].some((field) => engineFields[field] !== undefined)) return true;
  return (
    messages?.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type !== 'text')) ?? false
  );
}

/** Returns all text of a prompt in order; empty for token ids. */
export function textOfPrompt({ text, messages }: Prompt): string {
  const contents = messages?.flatMap(({ content }) =>
    Array.isArray(content) ? content.map((part) => part.text) : content,
  );
  return text ?? contents?.map((part) => part ?? '').join('') ?? '';
}
