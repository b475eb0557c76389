import type { EngineDialect } from '@broomwagon/contracts';
import { parseEvents } from './gateway';

interface Asked {
  prompt: number;
  stream: boolean;
  stop?: string;
  maxTokens?: number;
}

/** A door of the gateway by which each token has an id and a log probability. */
interface Door {
  path: string;
  dialects: readonly EngineDialect[];
  body: (asked: Asked) => object;
}

const SEED = 3;
const MAX_TOKENS = 500;
const OPENAI = { model: 'simulated', seed: SEED, return_token_ids: true };

const withStop = ({ stream, stop, maxTokens = MAX_TOKENS }: Asked): object => ({
  stream,
  max_tokens: maxTokens,
  ...(stop !== undefined && { stop: [stop] }),
  ...(stream && { stream_options: { include_usage: true } }),
});

export const ZOO_DOORS: readonly Door[] = [
  {
    path: '/v1/completions',
    dialects: ['vllm'],
    body: (asked) => ({ ...OPENAI, ...withStop(asked), prompt: [5, asked.prompt], logprobs: 1 }),
  },
  {
    path: '/v1/chat/completions',
    dialects: ['vllm'],
    body: (asked) => ({
      ...OPENAI,
      ...withStop(asked),
      messages: [{ role: 'user', content: `p ${asked.prompt}` }],
      logprobs: true,
    }),
  },
  {
    path: '/inference/v1/generate',
    dialects: ['vllm', 'sglang'],
    body: ({ prompt, stream, maxTokens = MAX_TOKENS }) => ({
      token_ids: [5, prompt],
      model: 'simulated',
      stream,
      sampling_params: { max_tokens: maxTokens, seed: SEED, logprobs: 0 },
    }),
  },
  {
    path: '/generate',
    dialects: ['vllm', 'sglang'],
    body: ({ prompt, stream, stop, maxTokens = MAX_TOKENS }) => ({
      input_ids: [5, prompt],
      stream,
      return_logprob: true,
      sampling_params: { max_new_tokens: maxTokens, sampling_seed: SEED, ...(stop !== undefined && { stop: [stop] }) },
    }),
  },
];

/** An answer of any door, or all chunks of one. */
export interface ZooReply {
  /** Text of the answer; undefined: the door answers with ids alone. */
  text: string | undefined;
  ids: number[];
  logprobs: (number | null)[];
  /** Finish reasons, in the order in which they arrived. */
  reasons: string[];
  usage: { prompt?: number; completion?: number };
}

interface Choice {
  text?: string;
  message?: { content: string | null };
  delta?: { content?: string | null };
  token_ids?: number[];
  logprobs?: { token_logprobs?: (number | null)[]; content?: { logprob: number | null }[] } | null;
  finish_reason?: string | null;
}

interface Part {
  choices?: Choice[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  text?: string;
  output_ids?: number[];
  meta_info?: {
    finish_reason: { type: string } | null;
    prompt_tokens: number;
    completion_tokens: number;
    output_token_logprobs: [number | null, number, string | null][];
  };
}

export function readReply(body: string | Part): ZooReply {
  const parts = (typeof body === 'string' ? parseEvents(body) : [body]).filter((part): part is Part => part !== null);
  const reply: ZooReply = { text: undefined, ids: [], logprobs: [], reasons: [], usage: {} };
  for (const part of parts) {
    for (const choice of part.choices ?? []) readChoice(choice, reply);
    if (part.usage) reply.usage = { prompt: part.usage.prompt_tokens, completion: part.usage.completion_tokens };
    const { meta_info: meta } = part;
    if (meta === undefined) continue;
    reply.text = (reply.text ?? '') + part.text!;
    reply.ids.push(...part.output_ids!);
    reply.logprobs.push(...meta.output_token_logprobs.map(([logprob]) => logprob));
    if (meta.finish_reason) reply.reasons.push(meta.finish_reason.type);
    reply.usage = { prompt: meta.prompt_tokens, completion: meta.completion_tokens };
  }
  return reply;
}

function readChoice(choice: Choice, reply: ZooReply): void {
  const text = choice.text ?? (choice.message ?? choice.delta)?.content ?? undefined;
  if (text !== undefined) reply.text = (reply.text ?? '') + text;
  reply.ids.push(...(choice.token_ids ?? []));
  reply.logprobs.push(...(choice.logprobs?.token_logprobs ?? []));
  reply.logprobs.push(...(choice.logprobs?.content ?? []).map(({ logprob }) => logprob));
  if (choice.finish_reason) reply.reasons.push(choice.finish_reason);
}
