import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { beforeEach, describe, expect, it } from 'vitest';
import { inEngine, inject, startEngine, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { post } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

let client: OpenAI;

const system = useGateway(40, { dialect: 'vllm', speed: 20 });
let { bench, gateway, second } = system;
beforeEach(() => {
  ({ bench, gateway, second } = system);
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});

const leases = async () => (await bench.client.call(bench.pool, 'lb.status', {})).leases;
const TOOL = { type: 'function', function: { name: 'search', parameters: { type: 'object' } } } as const;
const chat = {
  model: 'simulated',
  messages: [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: [{ type: 'text', text: 'How many clips?' }] },
  ] as OpenAI.ChatCompletionMessageParam[],
  max_tokens: 40,
  seed: 7,
  logprobs: true,
  top_logprobs: 2,
  /** A field of vLLM. */
  return_token_ids: true,
};
type Choice = OpenAI.ChatCompletion.Choice & { token_ids: number[] };

/** The answer of an engine that was not cut. */
const uncut = async (more: object = {}) =>
  (await post(`${second.url}/v1/chat/completions`, { ...chat, ...more })).body as OpenAI.ChatCompletion;

function expectSame(answer: OpenAI.ChatCompletion, whole: OpenAI.ChatCompletion): void {
  expect(answer.choices.map(({ message, finish_reason: reason }) => [message.content, reason])).toEqual(
    whole.choices.map(({ message, finish_reason: reason }) => [message.content, reason]),
  );
  for (const [index, choice] of answer.choices.entries()) {
    const wanted = whole.choices[index] as Choice;
    expect((choice as Choice).token_ids).toEqual(wanted.token_ids);
    expect(choice.logprobs!.content).toEqual(wanted.logprobs!.content);
  }
  expect(answer.usage).toEqual(whole.usage);
}

/** The whole answer of a stream, as the client of OpenAI puts it together. */
async function streamed(more: object = {}, options: object = {}): Promise<OpenAI.ChatCompletion> {
  const body = { ...chat, ...more, stream: true, stream_options: { include_usage: true } } as const;
  const stream = client.chat.completions.stream(body, options);
  const tokenIds: number[] = [];
  stream.on('chunk', (chunk) =>
    tokenIds.push(...((chunk.choices[0] as unknown as Choice | undefined)?.token_ids ?? [])),
  );
  const answer = await stream.finalChatCompletion();
  (answer.choices[0] as unknown as Choice).token_ids = tokenIds;
  return answer;
}
const whole = (more: object = {}, options: object = {}) =>
  client.chat.completions.create({ ...chat, ...more, stream: false }, options) as Promise<OpenAI.ChatCompletion>;
const ask = (stream: boolean, more: object = {}, options: object = {}) =>
  stream ? streamed(more, options) : whole(more, options);
/** The first engine stops sending after 7 tokens; then it dies, and an engine beside it is registered. */
async function cutAfterSeven(answered: Promise<unknown>, calls = 1): Promise<void> {
  // The test awaits the answer later; until then a failure must not count as unhandled.
  answered.catch(() => undefined);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(7 * calls);
  await system.registerSecond();
  await bench.engine.close();
}

it.each([false, true])('a chat is answered as by its engine; streamed: %s', async (stream) => {
  const answer = await ask(stream);
  const wanted = await uncut();
  expectSame(answer, wanted);
  const [{ message, finish_reason: reason }] = answer.choices as [Choice];
  expect([message.role, reason, answer.model, answer.id.slice(0, 9)]).toEqual([
    'assistant',
    'length',
    'simulated',
    'chatcmpl-',
  ]);
  expect(answer.choices[0]!.logprobs!.content![0]!.top_logprobs).toHaveLength(2);
  const { prompt_token_ids: ids } = (await whole()) as unknown as { prompt_token_ids: number[] };
  expect(ids).toHaveLength(answer.usage!.prompt_tokens);
});

it('n gives choices with the next seeds, and a stream has their usage only if it is asked for', async () => {
  const answer = await whole({ n: 2, max_completion_tokens: 20 });
  const wanted = [await uncut({ max_tokens: 20 }), await uncut({ max_tokens: 20, seed: 8 })];
  const contents = wanted.map(({ choices }) => choices[0]!.message.content);
  expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([...contents.entries()]);
  expect(answer.usage!.completion_tokens).toBe(40);
  const texts = ['', ''];
  const { logprobs: _, top_logprobs: __, ...plain } = chat;
  for await (const { choices, usage } of await client.chat.completions.create({ ...plain, n: 2, stream: true })) {
    for (const { index, delta, logprobs } of choices) {
      texts[index] += delta.content ?? '';
      expect(logprobs).toBeNull();
    }
    expect(usage).toBeUndefined();
  }
  expect(texts.map((text, index) => text.startsWith(contents[index]!))).toEqual([true, true]);
});

it('a chat without a budget is generated to its end', async () => {
  const { seed, messages, model } = chat;
  const getLength = () => 30;
  const short = await startEngine('vllm', { speed: 20, lengths: { name: 'short', getLength } });
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  await bench.register({ serverId: 's3', instanceId: 'i3', endpoint: short.url, model });
  // The second chat needs two attempts.
  for (const attempts of ['1', '2']) {
    const { body, headers } = await gateway.post('/v1/chat/completions', { model, messages, seed });
    const { choices, usage } = body as OpenAI.ChatCompletion;
    expect([choices[0]!.finish_reason, usage!.completion_tokens]).toEqual(['stop', 30]);
    expect(headers['x-broomwagon-attempts']).toBe(attempts);
    await inject(short.url, { kind: 'close-mid-stream', afterTokens: 7 });
  }
  await inject(short.url, { kind: 'none' });
  await short.close();
});

describe('an engine that dies', () => {
  it.each([false, true])('is replaced within the content, by token ids; streamed: %s', async (stream) => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 7 });
    const answered = ask(stream);
    await cutAfterSeven(answered);
    expectSame(await answered, await uncut());
    const { resumeMismatches, requests } = await fetchState(second.url);
    expect([resumeMismatches, requests.received]).toEqual([0, 2]);
  });

  it.each([
    ['tools', { tools: [TOOL] }, {}],
    ['structured output', { response_format: { type: 'json_object' } }, {}],
    ['resume off', {}, { headers: { 'X-Broomwagon-Resume': 'off' } }],
  ])(
    'with %s: the answer begins again while nothing was sent, a stream ends with an error',
    async (_, more, options) => {
      await inject(bench.engine.url, { kind: 'stall', count: 2, afterTokens: 7 });
      const answered = ask(false, more, options);
      const body = { ...chat, ...more, stream: true } as OpenAI.ChatCompletionCreateParamsStreaming;
      const isSent = client.chat.completions.create(body, options);
      await cutAfterSeven(answered, 2);
      const [choice] = (await answered).choices as [Choice];
      expect(choice.token_ids).toEqual(((await uncut(more)).choices[0] as Choice).token_ids);
      const fails = (async () => {
        for await (const chunk of await isSent) expect(chunk.choices[0]!.finish_reason).toBeNull();
      })();
      await expect(fails).rejects.toMatchObject({ type: 'ENGINE_ERROR' });
    },
  );
});

it.each([false, true])('calls of tools come as the engine has parsed them; streamed: %s', async (stream) => {
  const getLength = () => 12;
  const short = await startEngine('vllm', { speed: 20, lengths: { name: 'short', getLength } });
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  await bench.register({ serverId: 's3', instanceId: 'i3', endpoint: short.url, model: 'simulated' });
  const { choices } = await ask(stream, { tools: [TOOL] });
  const [{ message, finish_reason: reason }] = choices as [Choice];
  expect([reason, message.content || null]).toEqual(['tool_calls', null]);
  expect(message.tool_calls).toHaveLength(1);
  const [call] = message.tool_calls as [OpenAI.ChatCompletionMessageFunctionToolCall];
  expect([call.type, call.function.name]).toEqual(['function', 'search']);
  const { text } = JSON.parse(call.function.arguments) as { text: string };
  expect(text.trim().split(' ')).toHaveLength(12);
  // The result of the tool is a message of the next turn.
  const messages = [...chat.messages, message, { role: 'tool', tool_call_id: call.id, content: '4' }];
  expect((await ask(stream, { messages })).usage!.completion_tokens).toBe(12);
  await short.close();
});

it('turns of a session stay on its server', async () => {
  await system.registerSecond();
  const servers = new Set<string | undefined>();
  for (let turn = 0; turn < 6; turn++) {
    const reply = await gateway.post('/v1/chat/completions', chat, { 'X-Session-ID': 'a' });
    servers.add(reply.headers['x-broomwagon-server'] as string);
    expect(reply.headers['x-broomwagon-attempts']).toBe('1');
  }
  expect(servers.size).toBe(1);
});

it('fields that are not read go to the engine and back, reasoning too; an unknown model is not found', async () => {
  const bodies: Record<string, unknown>[] = [];
  const engine = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      if (request.url !== '/v1/chat/completions') return void response.writeHead(404).end();
      const body = JSON.parse(text) as Record<string, unknown>;
      bodies.push(body);
      if (body.model === 'none') {
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"The model `none` does not exist.","code":404}}');
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const deltas = [
        { role: 'assistant', content: '' },
        { reasoning: 'Let me ' },
        { reasoning: 'think' },
        { content: 'Four' },
      ];
      for (const [index, delta] of deltas.entries()) {
        const choice = { index: 0, delta, token_ids: index === 0 ? undefined : [index], finish_reason: null };
        const ids = index === 0 && { prompt_token_ids: [1, 2] };
        response.write(`data: ${JSON.stringify({ choices: [choice], ...ids })}\n\n`);
      }
      const last = {
        index: 0,
        delta: {},
        token_ids: [],
        finish_reason: 'stop',
        stop_reason: 'END',
        routed_experts: 'A',
      };
      const usage = { prompt_tokens: 2, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } };
      response.end(`data: ${JSON.stringify({ choices: [last], usage })}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  await bench.register({
    serverId: 's3',
    instanceId: 'i3',
    endpoint,
    dialect: 'vllm',
    model: 'simulated',
    probe: false,
  });
  const more = {
    stop: 'END',
    chat_template_kwargs: { enable_thinking: true },
    reasoning_effort: 'high',
    cache_salt: 'a',
  };
  const { choices, usage } = await whole({ ...more, logprobs: false, top_logprobs: undefined });
  // The cache salt begins with the salt of the lease. The client's salt follows.
  const cache_salt = expect.stringMatching(/^\d+\.a$/) as string;
  const sent = { ...more, cache_salt, stop: ['END'], messages: chat.messages, stream: true, max_tokens: 40 };
  expect(bodies[0]).toMatchObject(sent);
  expect(choices[0]).toMatchObject({
    message: { role: 'assistant', content: 'Four', reasoning: 'Let me think' },
    finish_reason: 'stop',
    stop_reason: 'END',
    routed_experts: 'A',
    token_ids: [1, 2, 3],
  });
  expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } });
  const failure: unknown = await whole({ model: 'none' }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
  expect(failure).toMatchObject({ code: 'model_not_found', param: 'model' });
  expect(bodies).toHaveLength(2);
  engine.closeAllConnections();
  engine.close();
});

it('a client that disconnects, or whose time is over, ends all choices', async () => {
  const body = { ...chat, max_tokens: 8_000, n: 3, stream: true } as const;
  const stream = await client.chat.completions.create(body);
  await stream[Symbol.asyncIterator]().next();
  await expect.poll(leases).toBe(3);
  stream.controller.abort();
  await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
  await expect.poll(leases).toBe(0);
  await inject(bench.engine.url, { kind: 'hang' });
  await expect(whole({}, { timeout: 300 })).rejects.toBeInstanceOf(OpenAI.APIConnectionTimeoutError);
  await expect.poll(leases).toBe(0);
});

it('the client repeats a request after a retryable error, and gets the answer once a server is there', async () => {
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  const answered = whole({}, { maxRetries: 5 });
  answered.catch(() => undefined);
  await expect.poll(() => gateway.metric('gateway_requests_total')).toBeGreaterThan(0);
  await bench.client.call(bench.pool, 'server.uncordon', { serverId: 's1' });
  expectSame(await answered, await uncut());
});

it('input that is wrong is refused with the field, and holds no lease', async () => {
  const wrong: [string, object, string | null][] = [
    ['no messages', { messages: undefined }, 'messages'],
    ['no message', { messages: [] }, 'messages'],
    ['a text', { messages: 'Hello' }, 'messages'],
    ['a message without a role', { messages: [{ content: 'a' }] }, 'messages.0.role'],
    ['a part without a type', { messages: [{ role: 'user', content: [{ text: 'a' }] }] }, 'messages.0.content.0'],
    ['n of 10,000', { n: 10_000 }, 'n'],
    ['half a choice', { n: 0.5 }, 'n'],
    ['tools of another type', { tools: { name: 'a' } }, 'tools'],
    ['logprobs of another type', { logprobs: 5 }, 'logprobs'],
    ['alternatives without logprobs', { logprobs: false }, 'top_logprobs'],
    ['no budget', { max_tokens: 0 }, 'max_tokens'],
    ['a budget of another type', { max_completion_tokens: '5' }, 'max_completion_tokens'],
    ['a number as text', { top_p: '1' }, 'top_p'],
    ['a stop list of 10 MB', { stop: Array.from({ length: 100_000 }, () => 'x'.repeat(100)) }, 'stop'],
    ['options of another type', { stream_options: [1] }, 'stream_options'],
    ['a model of another type', { model: 5 }, 'model'],
    ['a list as id', { request_id: ['a'] }, 'request_id'],
  ];
  for (const [name, more, param] of wrong) {
    const failure: unknown = await whole(more).catch((error: unknown) => error);
    expect(failure, name).toBeInstanceOf(OpenAI.BadRequestError);
    expect(failure, name).toMatchObject({ type: 'VALIDATION_FAILED', param });
  }
  const broken = await gateway.post('/v1/chat/completions', '{"messages":');
  expect([broken.status, broken.body.error.type]).toEqual([400, 'MALFORMED_JSON']);
  for (const stream of [false, true]) {
    const failure: unknown = await ask(stream, { max_tokens: 200_000 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.BadRequestError);
    expect(failure).toMatchObject({ status: 400, code: 'context_length_exceeded' });
  }
});
