import Anthropic from '@anthropic-ai/sdk';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { beforeEach, expect, it } from 'vitest';
import { chatOfMessages } from './messages-request';
import { inEngine, inject } from '../../../../../lab/engine-simulator/src/test-engine';
import { Gateway, post } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

let client: Anthropic;

const system = useGateway(11, { dialect: 'vllm', tokens: 12, speed: 20 });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
  client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
});

/** The seed is a field of the engine. */
const request = {
  model: 'simulated',
  max_tokens: 40,
  system: 'Be short.',
  messages: [{ role: 'user', content: 'How many clips?' }] as Anthropic.MessageParam[],
  seed: 7,
};
const TOOL: Anthropic.Tool = { name: 'search', description: 'Searches', input_schema: { type: 'object' } };
/** Sends the chat of the message to the engine itself. */
async function chat(more: object = {}) {
  const body = { ...chatOfMessages({ ...request, ...more }), model: 'simulated' };
  return (await post(`${bench.engine.url}/v1/chat/completions`, body)).body;
}
const ask = (stream: boolean, more: object = {}) =>
  stream
    ? client.messages.stream({ ...request, ...more }).finalMessage()
    : client.messages.create({ ...request, ...more, stream: false });

it.each([false, true])('a message has the text of the chat; streamed: %s', async (stream) => {
  const [whole, message] = [await chat(), await ask(stream)];
  expect(message.content).toMatchObject([{ type: 'text', text: whole.choices[0].message.content }]);
  expect(message).toMatchObject({
    type: 'message',
    role: 'assistant',
    model: 'simulated',
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: whole.usage.prompt_tokens, output_tokens: 12 },
  });
  expect((await ask(stream, { max_tokens: 5 })).stop_reason).toBe('max_tokens');
});

it.each([false, true])('tools are called, and their results answered; streamed: %s', async (stream) => {
  const message = await ask(stream, { tools: [TOOL], tool_choice: { type: 'any' } });
  expect(message.stop_reason).toBe('tool_use');
  const [block] = message.content as [Anthropic.ToolUseBlock];
  const { arguments: wanted } = (await chat({ tools: [TOOL] })).choices[0].message.tool_calls[0].function;
  expect([message.content.length, block.type, block.name]).toEqual([1, 'tool_use', 'search']);
  expect(block.input).toEqual(JSON.parse(wanted as string));
  const result = { type: 'tool_result', tool_use_id: block.id, content: [{ type: 'text', text: '4' }] };
  const turn = [
    { role: 'assistant', content: message.content },
    { role: 'user', content: [result] },
  ];
  const next = await ask(stream, { messages: [...request.messages, ...turn] });
  expect(next.content).toMatchObject([{ type: 'text' }]);
});

it('blocks become parts of a chat', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a', cache_control: {} },
        { type: 'image', source },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'b', signature: '' },
        { type: 'text', text: 'c' },
        { type: 'tool_use', id: '1', name: 'search', input: { d: 1 } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: '1', content: 'e' },
        { type: 'text', text: 'f' },
      ],
    },
  ];
  const more = { stop_sequences: ['x'], thinking: { type: 'enabled', budget_tokens: 9 }, top_k: 3 };
  expect(chatOfMessages({ messages, system: [{ type: 'text', text: 's' }], max_tokens: 4, ...more })).toEqual({
    messages: [
      { role: 'system', content: 's' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
      {
        role: 'assistant',
        content: 'c',
        reasoning: 'b',
        tool_calls: [{ id: '1', type: 'function', function: { name: 'search', arguments: '{"d":1}' } }],
      },
      { role: 'tool', tool_call_id: '1', content: 'e' },
      { role: 'user', content: [{ type: 'text', text: 'f' }] },
    ],
    max_tokens: 4,
    n: 1,
    stop: ['x'],
    thinking_token_budget: 9,
    top_k: 3,
  });
});

it('tokens are counted, made of texts and texts of them, by an engine of the pool', async () => {
  const { input_tokens: count } = await client.messages.countTokens({
    model: 'simulated',
    system: request.system,
    messages: request.messages,
  });
  expect(count).toBe((await chat()).usage.prompt_tokens);
  for (const prefix of ['', '/v1']) {
    const { status, body } = await gateway.post(`${prefix}/tokenize`, { prompt: 'Hello world' });
    expect([status, body.count]).toEqual([200, body.tokens.length]);
    const text = await gateway.post(`${prefix}/detokenize`, { tokens: body.tokens });
    expect(text.body).toEqual({ prompt: 'Hello world' });
  }
  const refused = await gateway.post('/detokenize', { tokens: 'a' });
  expect(refused.status).toBe(400);
  await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
  expect((await gateway.post('/tokenize', { prompt: 'a' })).body.error.type).toBe('NO_SERVER_AVAILABLE');
});

/** `String` throws for it. */
const NO_TEXT = { toString: null };

it('errors have the form of Anthropic, of keys and in a stream too', async () => {
  const wrong: [string, object, string][] = [
    ['no messages', { messages: undefined }, 'messages'],
    ['no budget', { max_tokens: undefined }, 'max_tokens'],
    ['another role', { messages: [{ role: 'system', content: 'a' }] }, 'messages.0.role'],
    ['a document', { messages: [{ role: 'user', content: [{ type: 'document' }] }] }, 'messages.0.content.0'],
    ['a number', { messages: [{ role: 'user', content: 5 }] }, 'messages.0.content'],
    ['a tool of the server', { tools: [{ type: 'web_search_20250305', name: 'a' }] }, 'tools.0.type'],
    ['no text', { messages: [{ role: 'assistant', content: [{ type: 'text' }] }] }, 'messages.0.content.0.text'],
    ['a block of no type', { messages: [{ role: 'user', content: [{ type: NO_TEXT }] }] }, 'messages.0.content.0'],
    ['a choice with the name of a method', { tool_choice: { type: 'constructor' } }, 'tool_choice'],
    ['another choice of tools', { tool_choice: { type: 'most' } }, 'tool_choice'],
    ['a stop list of 10 MB', { stop_sequences: ['x'.repeat(1e7)] }, 'stop'],
  ];
  for (const [name, more, param] of wrong) {
    const failure: unknown = await ask(false, more).catch((error: unknown) => error);
    expect(failure, name).toBeInstanceOf(Anthropic.BadRequestError);
    const error = { type: 'invalid_request_error', code: 'VALIDATION_FAILED', param };
    expect(failure, name).toMatchObject({ error: { type: 'error', error } });
  }
  const message = expect.stringMatching(/^prompt is too long: /) as string;
  const tooLong = { type: 'invalid_request_error', code: 'CONTEXT_TOO_LONG', message };
  await expect(ask(true, { max_tokens: 200_000 })).rejects.toMatchObject({ status: 400, error: { error: tooLong } });
  await inject(bench.engine.url, { kind: 'close-mid-stream', count: 1, afterTokens: 3 });
  const stream = ask(true, { tools: [TOOL] });
  await expect(stream).rejects.toMatchObject({ error: { type: 'error', error: { code: 'ENGINE_ERROR' } } });
  await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
});

it('a stream has its stop reason in the last events alone, also if it ends before its first token', async () => {
  await system.gateway.post('/abort_request', { rid: 'early' });
  const headers = { 'x-request-id': 'early' };
  const { body } = await system.gateway.post('/v1/messages', { ...request, stream: true }, headers);
  const reasons = [...(body as string).matchAll(/"stop_reason":(null|"\w+")/g)].map(([, reason]) => reason);
  expect(reasons).toEqual(['null', '"abort"']);
});

it('the key may be in the header x-api-key', async () => {
  const secured = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  const redis = connectRedis({ url: testRedisUrl() });
  const store = new CredentialStore(redis, bench.prefix);
  const { token } = await store.create({ name: 'agent', role: 'client', pools: [bench.pool] });
  redis.disconnect();
  const other = (apiKey: string) => new Anthropic({ baseURL: secured.url, apiKey, maxRetries: 0 });
  await expect(other('wrong').messages.create(request)).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
  expect((await other(token).messages.create(request)).stop_reason).toBe('end_turn');
  await secured.close();
});
