import type { EngineDialect } from '@broomwagon/contracts';
import { post } from './gateway';
import { readReply, type ZooReply } from './zoo-replies';

interface Asked {
  dialect: EngineDialect;
  prompt: number;
  stream: boolean;
  stop?: string;
  maxTokens?: number;
}

/** A door of the gateway. */
export interface ZooDoor {
  name: string;
  path: string;
  dialects: readonly EngineDialect[];
  /** Whether the prompt is a chat. */
  isChat?: true;
  /** Whether answers have the id and the log probability of each token, if the engine has them. */
  hasIds?: true;
  /** Dialects of engines on which a response begins again when it is cut, so that a stream may end with an error. */
  beginsAgain?: readonly EngineDialect[];
  body: (asked: Asked) => object;
}

const SEED = 3;
const MAX_TOKENS = 500;
const MODEL = { model: 'simulated', seed: SEED };
/** All parameters that the chat route of SGLang would take from the model: a chat with them is continued. */
const SAMPLING = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 };
const toSampling = (dialect: EngineDialect): object => (dialect === 'sglang' ? SAMPLING : {});

const stopped = (name: string, stop: string | undefined): object => (stop === undefined ? {} : { [name]: [stop] });
const streamed = (stream: boolean): object => ({ stream, ...(stream && { stream_options: { include_usage: true } }) });
const toMessages = (prompt: number): object => ({ messages: [{ role: 'user', content: `p ${prompt}` }] });
const toPrompt = (dialect: EngineDialect, prompt: number): number[] | string =>
  dialect === 'openai' ? `p ${prompt}` : [5, prompt];

const chat = ({ prompt, stream, stop, maxTokens = MAX_TOKENS }: Asked): object => ({
  ...MODEL,
  ...toMessages(prompt),
  ...streamed(stream),
  ...stopped('stop', stop),
  max_tokens: maxTokens,
});

export const ZOO_DOORS: readonly ZooDoor[] = [
  {
    name: 'completions',
    path: '/v1/completions',
    dialects: ['vllm', 'sglang', 'openai'],
    hasIds: true,
    body: ({ dialect, prompt, stream, stop, maxTokens = MAX_TOKENS }) => ({
      ...MODEL,
      ...streamed(stream),
      ...stopped('stop', stop),
      prompt: toPrompt(dialect, prompt),
      max_tokens: maxTokens,
      logprobs: 1,
      return_token_ids: true,
    }),
  },
  {
    name: 'chats',
    path: '/v1/chat/completions',
    dialects: ['vllm', 'sglang', 'openai'],
    isChat: true,
    hasIds: true,
    beginsAgain: ['openai'],
    body: (asked) => ({ ...chat(asked), ...toSampling(asked.dialect), logprobs: true, return_token_ids: true }),
  },
  {
    // The chat route of SGLang runs chats whose parameters the gateway does not know.
    name: 'chats of the engine',
    path: '/v1/chat/completions',
    dialects: ['sglang'],
    isChat: true,
    beginsAgain: ['sglang'],
    body: chat,
  },
  {
    name: 'messages',
    path: '/v1/messages',
    dialects: ['vllm', 'sglang', 'openai'],
    isChat: true,
    beginsAgain: ['openai'],
    body: ({ dialect, prompt, stream, stop, maxTokens = MAX_TOKENS }) => ({
      ...MODEL,
      ...toSampling(dialect),
      ...toMessages(prompt),
      ...stopped('stop_sequences', stop),
      stream,
      max_tokens: maxTokens,
    }),
  },
  {
    name: 'responses',
    path: '/v1/responses',
    dialects: ['vllm', 'sglang', 'openai'],
    isChat: true,
    beginsAgain: ['openai'],
    body: ({ dialect, prompt, stream, stop, maxTokens = MAX_TOKENS }) => ({
      ...MODEL,
      ...toSampling(dialect),
      ...stopped('stop', stop),
      input: `p ${prompt}`,
      stream,
      max_output_tokens: maxTokens,
    }),
  },
  {
    name: 'tokens',
    path: '/inference/v1/generate',
    dialects: ['vllm', 'sglang'],
    hasIds: true,
    body: ({ prompt, stream, maxTokens = MAX_TOKENS }) => ({
      token_ids: [5, prompt],
      model: 'simulated',
      stream,
      sampling_params: { max_tokens: maxTokens, seed: SEED, logprobs: 0 },
    }),
  },
  {
    name: 'generate',
    path: '/generate',
    dialects: ['vllm', 'sglang'],
    hasIds: true,
    body: ({ prompt, stream, stop, maxTokens = MAX_TOKENS }) => ({
      input_ids: [5, prompt],
      stream,
      return_logprob: true,
      sampling_params: { max_new_tokens: maxTokens, sampling_seed: SEED, ...stopped('stop', stop) },
    }),
  },
];

/** The whole response of an engine without behaviours, without the gateway. */
export async function askEngine(
  url: string,
  dialect: EngineDialect,
  { isChat }: ZooDoor,
  prompt: number,
): Promise<ZooReply> {
  const asked = { dialect, prompt, stream: false };
  const isGenerate = dialect === 'sglang' && isChat === undefined;
  const path = isGenerate ? '/generate' : isChat ? '/v1/chat/completions' : '/v1/completions';
  const door = ZOO_DOORS.find((one) => one.path === path)!;
  const { status, body } = await post(`${url}${path}`, door.body(asked));
  if (status !== 200) throw new Error(`The engine answered ${status}: ${JSON.stringify(body)}`);
  return readReply(body);
}
