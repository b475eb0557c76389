import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import type { EngineAdapter, GeneratedChat } from '../engine-adapter';

let server: Server;
afterEach(() => server.close());

/** An engine of vLLM that parses every chat as this message; its last token is `<end>`. */
async function startEngine(message: object | null, bodies: Record<string, unknown>[] = []): Promise<EngineAdapter> {
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      const body = JSON.parse(text || '{}') as Record<string, unknown>;
      const isParse = request.url === '/v1/chat/completions/derender';
      const hasChat = (request.method === 'POST' && !isParse) || 'chat_request' in body;
      if (hasChat) bodies.push(body);
      response
        .writeHead(hasChat ? 200 : 422)
        .end(JSON.stringify(isParse ? { choices: [{ message: message && { ...message } }] } : { prompt: '<end>' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return createEngineAdapter('vllm', `http://127.0.0.1:${(server.address() as AddressInfo).port}`, { model: 'm' });
}

const chat: GeneratedChat = {
  prompt: { messages: [{ role: 'user', content: 'a' }], engineFields: { reasoning_effort: 'low', top_logprobs: 2 } },
  promptTokenIds: [1, 2],
  tokenIds: [5, 6],
  text: 'Four',
  finishReason: 'stop',
};

const call = (more: object) => ({ id: 'c', type: 'function', function: { name: 'search', arguments: '{}', ...more } });

it('a chat is parsed with its request, and without the text of the token that ended it', async () => {
  const bodies: Record<string, unknown>[] = [];
  const engine = await startEngine({ content: 'Four<end>', reasoning: 'a<end>b' }, bodies);
  expect(await engine.canParseChats()).toBe(true);
  expect(await engine.parseChat(chat)).toEqual({ content: 'Four', reasoning: 'a<end>b' });
  expect(bodies[0]).toEqual({
    model: 'm',
    generate_response: {
      request_id: 'parsed',
      choices: [{ index: 0, token_ids: [5, 6], finish_reason: 'stop' }],
      prompt_token_ids: [1, 2],
    },
    prompt_tokens: 2,
    chat_request: { reasoning_effort: 'low', model: 'm', messages: [{ role: 'user', content: 'a' }] },
  });
  expect(bodies[1]).toEqual({ model: 'm', tokens: [6] });
});

it.each([
  ['the text has the last token', { text: 'Four<end>' }],
  ['the response was not ended by a token', { finishReason: 'length' as const }],
])('nothing is removed if %s', async (_, more) => {
  const engine = await startEngine({ content: 'Four<end>' });
  expect(await engine.parseChat({ ...chat, ...more })).toEqual({ content: 'Four<end>' });
});

it('one call of a tool is kept if the request allows one', async () => {
  const calls = [call({}), call({ arguments: '{"a":1}' })];
  const engine = await startEngine({ content: null, tool_calls: calls });
  const prompt = { ...chat.prompt, engineFields: { parallel_tool_calls: false } };
  expect(await engine.parseChat({ ...chat, prompt })).toEqual({ content: null, tool_calls: calls.slice(0, 1) });
});

it.each([404, 405, 403])('an engine whose route answers %i parses no chats', async (status) => {
  server = createServer(({ method }, response) =>
    response.writeHead(method === 'OPTIONS' && status !== 404 ? 405 : status).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  expect(await createEngineAdapter('vllm', `http://127.0.0.1:${port}`, { model: 'm' }).canParseChats()).toBe(false);
});

it('engines of other dialects parse no chats', async () => {
  for (const dialect of ['sglang', 'openai'] as const) {
    const engine = createEngineAdapter(dialect, 'http://127.0.0.1:1');
    expect(await engine.canParseChats()).toBe(false);
    await expect(engine.parseChat(chat)).rejects.toMatchObject({ code: 'ENGINE_REJECTED' });
  }
  server = createServer();
});

it.each([
  ['no message', null],
  ['an object as calls', { content: 'a', tool_calls: {} }],
  ['a call that is null', { content: 'a', tool_calls: [null] }],
  ['a call without a function', { content: 'a', tool_calls: [{ id: 'c' }] }],
  ['a call without arguments', { content: 'a', tool_calls: [call({}), call({ arguments: null })] }],
  ['a call without a name', { content: 'a', tool_calls: [call({ name: 5 })] }],
])('%s in place of a parsed chat is an error of the engine', async (_, message) => {
  await expect((await startEngine(message)).parseChat(chat)).rejects.toMatchObject({ code: 'ENGINE_PROTOCOL' });
});
