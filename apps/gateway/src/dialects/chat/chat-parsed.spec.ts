import OpenAI from 'openai';
import { beforeEach, expect, it } from 'vitest';
import { inject, startEngine, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { Gateway, post, recordingFetch } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

const TOKENS = 40;
/** Number of reasoning tokens, the first ones of each message without tools. */
const REASONING = 10;
const MODEL = { scaleOut: true, reasoningTokens: REASONING };

const system = useGateway(20, { dialect: 'vllm', tokens: TOKENS, speed: 20, engine: MODEL });
let { bench, gateway, second } = system;
beforeEach(() => {
  ({ bench, gateway, second } = system);
});

async function startSecond(options: object): Promise<void> {
  await system.startSecond(options);
  ({ second } = system);
}

const TOOLS = { tools: [{ type: 'function', function: { name: 'search', parameters: { type: 'object' } } }] };
const chat = {
  model: 'simulated',
  messages: [{ role: 'user', content: 'How many clips?' }],
  max_tokens: 100,
  seed: 7,
  logprobs: true,
  top_logprobs: 2,
  return_token_ids: true,
};
type Message = OpenAI.ChatCompletionMessage & { reasoning?: string };
interface Answer {
  choices: (OpenAI.ChatCompletion.Choice & { message: Message; token_ids: number[] })[];
  usage: OpenAI.CompletionUsage;
}

/** Ids of tool calls are random. */
function toParts({ choices: [choice], usage }: Answer): object {
  const { content, reasoning = '', tool_calls: calls } = choice!.message;
  return {
    content: content ?? '',
    reasoning: reasoning ?? '',
    calls: (calls as OpenAI.ChatCompletionMessageFunctionToolCall[] | undefined)?.map((call) => call.function),
    reason: choice!.finish_reason,
    ids: choice!.token_ids,
    logprobs: choice!.logprobs!.content,
    usage,
  };
}

/** The answer of an engine that was not cut. */
const uncut = async (more: object = {}) =>
  (await post(`${second.url}/v1/chat/completions`, { ...chat, ...more })).body as Answer;

/** The answer; for a stream the client of OpenAI joins its parts. */
async function ask(stream: boolean, more: object = {}, fetch?: typeof globalThis.fetch): Promise<Answer> {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0, fetch });
  const body = { ...chat, ...more } as OpenAI.ChatCompletionCreateParamsNonStreaming;
  if (!stream) return (await client.chat.completions.create(body)) as unknown as Answer;
  const events = client.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } });
  let reasoning = '';
  const ids: number[] = [];
  events.on('chunk', ({ choices: [choice] }) => {
    const part = choice as unknown as { token_ids?: number[]; delta: Message } | undefined;
    ids.push(...(part?.token_ids ?? []));
    reasoning += part?.delta.reasoning ?? '';
  });
  const answer = (await events.finalChatCompletion()) as unknown as Answer;
  answer.choices[0]!.token_ids = ids;
  answer.choices[0]!.message.reasoning = reasoning;
  return answer;
}

/** The first engine stops sending after 7 tokens; then it dies, and the second one is registered. */
async function cut(answered: Promise<unknown>): Promise<void> {
  // The test awaits the answer later; until then a failure must not count as unhandled.
  answered.catch(() => undefined);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(7);
  await system.registerSecond();
  await bench.engine.close();
}

/** Tokens that the second engine has generated, less the tokens of the answer that was not cut. */
const madeBySecond = async () => (await fetchState(second.url)).tokensMade - TOKENS;

it.each([
  ['reasoning', false, {}],
  ['reasoning', true, {}],
  ['calls of tools', false, TOOLS],
  ['calls of tools', true, TOOLS],
])(
  'a response that is cut within its %s is continued, and parsed at its end; streamed: %s',
  async (_, stream, more) => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
    const answered = ask(stream, more);
    await cut(answered);
    expect(toParts(await answered)).toEqual(toParts(await uncut(more)));
    expect(await madeBySecond()).toBe(TOKENS - 7);
    expect((await fetchState(second.url)).resumeMismatches).toBe(0);
  },
);

it('a stream that is silent between the cut and the end has comments, which its client ignores', async () => {
  await gateway.close();
  gateway = system.gateway = await Gateway.start(bench.prefix, bench.pool, { silenceMs: 20 });
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
  const { raw, fetch } = recordingFetch();
  const answered = ask(true, TOOLS, fetch);
  await cut(answered);
  expect(toParts(await answered)).toEqual(toParts(await uncut(TOOLS)));
  expect(raw.join('')).toMatch(/\n\n:\n\n/);
});

/** Texts of all tokens in an answer, each once. */
const listWords = (text: unknown): unknown[] =>
  [...JSON.stringify(text).matchAll(/ t\d+/g)]
    .map(([word]) => word)
    .filter((word, index, all) => all.indexOf(word) === index);

it.each([
  [
    '/v1/messages',
    {
      messages: chat.messages,
      max_tokens: 100,
      seed: 7,
      tools: [{ name: 'search', input_schema: { type: 'object' } }],
    },
    false,
  ],
  [
    '/v1/responses',
    {
      input: 'How many clips?',
      seed: 7,
      tools: [{ type: 'function', name: 'search', parameters: { type: 'object' } }],
    },
    true,
  ],
])('calls of tools that are cut are continued, also by %s', async (path, body, stream) => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
  const answered = gateway.post(path, { model: 'simulated', ...body, stream });
  await cut(answered);
  const { status, body: answer } = await answered;
  const whole = await gateway.post(path, { model: 'simulated', ...body, stream });
  expect([status, listWords(answer).length]).toEqual([200, TOKENS]);
  expect(listWords(answer)).toEqual(listWords(whole.body));
  expect(await madeBySecond()).toBe(TOKENS - 7);
});

it.each([
  ['an engine that cannot parse', {}, { scaleOut: false }],
  ['a stop text', { stop: ['none'] }, {}],
  ['a tool with a strict schema', { tools: [{ type: 'function', function: { name: 'search', strict: true } }] }, {}],
  ['a choice of tools', { ...TOOLS, tool_choice: 'required' }, {}],
])('with %s a response that is not streamed begins again', async (_, more, options) => {
  await startSecond(options);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
  const answered = ask(false, more);
  await cut(answered);
  expect(toParts(await answered)).toEqual(toParts(await uncut(more)));
  expect(await madeBySecond()).toBe(TOKENS);
});

it.each([
  ['an engine that cannot parse', { scaleOut: false }, 'ENGINE_ERROR'],
  ['an engine that parses otherwise', { reasoningTokens: 5 }, 'ENGINE_PROTOCOL'],
])('with %s a stream ends with an error', async (_, options, type) => {
  await startSecond(options);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
  const answered = ask(true);
  await cut(answered);
  await expect(answered).rejects.toMatchObject({ type });
});

it.each([
  ['within its content', false, { reasoningTokens: 0 }, {}, 7],
  ['within its content', true, { reasoningTokens: 0 }, {}, 7],
  ['within its reasoning', false, {}, {}, 7],
  ['within its calls of tools', true, {}, TOOLS, 7],
  ['within its reasoning, without an engine that can parse', true, { scaleOut: false }, {}, 0],
])(
  'a chat whose gateway ends %s is answered by another replica; streamed: %s',
  async (_, stream, options, more, kept) => {
    await bench.engine.close();
    bench.engine = await startEngine('vllm', {
      speed: 20,
      lengths: { name: 'test', getLength: () => TOKENS },
      ...MODEL,
      ...options,
    });
    await startSecond(options);
    // The engine of server s1 has ended: the server would keep the id until probes notice.
    await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
    await bench.register({ endpoint: bench.engine.url, instanceId: 'i3', model: 'simulated' });
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
    const body = { ...more, request_id: 'mine' };
    const first = ask(stream, body);
    first.catch(() => undefined);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(7);
    await gateway.close();
    await expect(first).rejects.toThrow();
    gateway = system.gateway = await Gateway.start(bench.prefix, bench.pool);
    await system.registerSecond();
    await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
    expect(toParts(await ask(stream, body))).toEqual(toParts(await uncut(more)));
    expect(await gateway.metric('gateway_restored_tokens_total')).toBe(7);
    expect(await madeBySecond()).toBe(TOKENS - kept);
  },
);
