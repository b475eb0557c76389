import { expect } from 'vitest';

/** An answer of any door, or all events of one. */
export interface ZooReply {
  /** Text of the answer; undefined: the door answers with ids alone. */
  text: string | undefined;
  ids: number[];
  logprobs: (number | null)[];
  /** Finish reasons by their names in the API of OpenAI, in the order in which they arrived. */
  reasons: string[];
  usage: { prompt?: number; completion?: number };
  /** Code of the error that ended the answer. */
  error: string | undefined;
}

interface Choice {
  text?: string;
  message?: { content: string | null };
  delta?: { content?: string | null };
  token_ids?: number[];
  logprobs?: { token_logprobs?: (number | null)[]; content?: { logprob: number | null }[] } | null;
  finish_reason?: string | null;
}

interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  input_tokens?: number;
  cache_read_input_tokens?: number;
  output_tokens?: number;
}

/** Whole response of `/v1/responses`. */
interface Response {
  status: string;
  incomplete_details: { reason: string } | null;
  output: { content: { text: string }[] }[];
  usage: Usage | null;
}

interface Part extends Partial<Omit<Response, 'usage'>> {
  type?: string;
  error?: { code?: string | number; type?: string };
  /** Completions, chats and token ids. */
  choices?: Choice[];
  usage?: Usage | null;
  /** `/generate`. */
  text?: string;
  output_ids?: number[];
  meta_info?: {
    finish_reason: { type: string } | null;
    prompt_tokens: number;
    completion_tokens: number;
    output_token_logprobs: [number | null, number, string | null][];
  };
  /** Messages. */
  content?: { text: string }[];
  stop_reason?: string | null;
  /** Streams of messages and responses. */
  delta?: string | { text?: string; stop_reason?: string };
  message?: Part;
  response?: Response;
}

const REASONS = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['completed', 'stop'],
  ['incomplete', 'length'],
  ['cancelled', 'abort'],
]);

export function readReply(body: string | Part): ZooReply {
  const reply: ZooReply = { text: undefined, ids: [], logprobs: [], reasons: [], usage: {}, error: undefined };
  const parts = typeof body === 'string' ? parseStream(body) : [body];
  for (const part of parts) {
    if (part.error) reply.error = typeof part.error.code === 'string' ? part.error.code : part.error.type;
    for (const choice of part.choices ?? []) readChoice(choice, reply);
    if (part.meta_info !== undefined) readMeta(part, reply);
    readMessage(part.message ?? part, reply);
    if (part.response === undefined) readDelta(part, reply);
    const response = part.response ?? (part.output === undefined ? undefined : (part as Response));
    if (response !== undefined) readResponse(response, reply);
    if (part.usage) readUsage(part.usage, reply);
  }
  return reply;
}

/** Data of all events, without `[DONE]`. */
function parseStream(body: string): Part[] {
  const lines = body.split('\n').filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]');
  return lines.map((line) => JSON.parse(line.slice('data: '.length)) as Part);
}

function append(reply: ZooReply, text: string | null | undefined): void {
  if (text != null) reply.text = (reply.text ?? '') + text;
}

function readChoice(choice: Choice, reply: ZooReply): void {
  append(reply, choice.text ?? (choice.message ?? choice.delta)?.content);
  reply.ids.push(...(choice.token_ids ?? []));
  reply.logprobs.push(...(choice.logprobs?.token_logprobs ?? []));
  reply.logprobs.push(...(choice.logprobs?.content ?? []).map(({ logprob }) => logprob));
  if (choice.finish_reason) reply.reasons.push(choice.finish_reason);
}

function readMeta({ text, output_ids: ids, meta_info: meta }: Part, reply: ZooReply): void {
  append(reply, text);
  reply.ids.push(...ids!);
  reply.logprobs.push(...meta!.output_token_logprobs.map(([logprob]) => logprob));
  if (meta!.finish_reason) reply.reasons.push(meta!.finish_reason.type);
  readUsage(meta!, reply);
}

function readMessage({ content, stop_reason: reason, usage }: Part, reply: ZooReply): void {
  for (const { text } of content ?? []) append(reply, text);
  if (reason) reply.reasons.push(REASONS.get(reason) ?? reason);
  if (usage) readUsage(usage, reply);
}

function readDelta({ type, delta }: Part, reply: ZooReply): void {
  if (typeof delta === 'object') {
    append(reply, delta.text);
    if (delta.stop_reason) reply.reasons.push(REASONS.get(delta.stop_reason) ?? delta.stop_reason);
  } else if (type === 'response.output_text.delta') append(reply, delta);
}

function readResponse({ status, output, usage }: Response, reply: ZooReply): void {
  if (status === 'in_progress') return;
  reply.reasons.push(REASONS.get(status) ?? status);
  const text = output.flatMap(({ content }) => content.map((part) => part.text)).join('');
  if (reply.text === undefined) reply.text = text;
  else expect(text, 'the text of the whole response').toBe(reply.text);
  if (usage !== null) readUsage(usage, reply);
}

function readUsage(usage: Usage, reply: ZooReply): void {
  const prompt = usage.prompt_tokens ?? usage.input_tokens;
  reply.usage.prompt = prompt === undefined ? reply.usage.prompt : prompt + (usage.cache_read_input_tokens ?? 0);
  reply.usage.completion = usage.completion_tokens ?? usage.output_tokens;
}
