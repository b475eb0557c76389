import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EngineDialect, Prompt } from '@broomwagon/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import type { GenerationResult, MadeTokens } from '../engine-adapter';

/** Called routes with their bodies. */
let calls: { path: string; body: Record<string, unknown> }[] = [];
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  calls = [];
});

/** Runs one generation on a server that streams these events. */
async function generate(
  dialect: EngineDialect,
  prompt: Prompt,
  events: object[],
  made?: MadeTokens,
  cacheSalt?: string,
  { sessionId, info }: { sessionId?: string; info?: object } = {},
): Promise<GenerationResult> {
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      if (request.url === '/get_server_info' && info) return void response.end(JSON.stringify(info));
      if (request.method !== 'POST') return void response.writeHead(404).end();
      calls.push({ path: request.url!, body: JSON.parse(text) as Record<string, unknown> });
      if (request.url === '/tokenize') return void response.end(JSON.stringify({ tokens: [7, 8] }));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const adapter = createEngineAdapter(dialect, url, { model: 'base' });
  return adapter.generate({ engineRequestId: 'x'.repeat(32), prompt, maxTokens: 16, made, cacheSalt, sessionId });
}

const MESSAGES = [
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ],
  },
  { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f' } }] },
  { role: 'tool', tool_call_id: 'c1', content: 'a cat' },
];

describe('fields that Broomwagon does not read', () => {
  it('pass to vLLM and back: messages as they are, tools, a LoRA adapter by its model name, routed experts', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const result = await generate(
      'vllm',
      { messages: MESSAGES, engineFields: { tools, model: 'my-lora', return_routed_experts: true } },
      [
        { choices: [{ delta: { content: 'a', tool_calls: [{ index: 0, id: 'c2' }] }, token_ids: [1] }] },
        { choices: [{ delta: { tool_calls: [{ index: 0, arguments: '{}' }] }, token_ids: [2] }] },
        { choices: [{ delta: {}, finish_reason: 'stop', routed_experts: [[3, 4]] }], prompt_token_ids: [9] },
      ],
    );
    expect(calls[0]).toMatchObject({
      path: '/v1/chat/completions',
      body: { messages: MESSAGES, tools, model: 'my-lora', return_routed_experts: true, max_tokens: 16 },
    });
    expect(result.engineFields).toEqual({
      tool_calls: [
        { index: 0, id: 'c2' },
        { index: 0, arguments: '{}' },
      ],
      routed_experts: [[3, 4]],
      prompt_token_ids: [9],
    });
    expect(result).toMatchObject({ tokenIds: [1, 2], text: 'a' });
  });

  it('pass to SGLang and back, sampling parameters put together', async () => {
    const fields = { lora_path: 'l', return_routed_experts: true, sampling_params: { regex: 'a*' } };
    const meta = { id: 'x', completion_tokens: 1, prompt_tokens: 2, finish_reason: { type: 'stop' } };
    const result = await generate('sglang', { promptTokenIds: [5], engineFields: fields }, [
      { text: 'a', output_ids: [1], meta_info: { ...meta, routed_experts: 'BASE64' } },
    ]);
    expect(calls.at(-1)).toMatchObject({
      path: '/generate',
      body: {
        input_ids: [5],
        lora_path: 'l',
        return_routed_experts: true,
        sampling_params: { regex: 'a*', max_new_tokens: 16 },
      },
    });
    expect(result.engineFields).toEqual({ routed_experts: 'BASE64' });
  });

  it('of an adapter on vLLM are refused with the field that vLLM has for its name', async () => {
    const prompt = { promptTokenIds: [5], engineFields: { lora_path: 'my-lora' } };
    await expect(generate('vllm', prompt, [])).rejects.toMatchObject({
      code: 'ENGINE_REJECTED',
      field: 'lora_path',
      message: expect.stringContaining('name the adapter "my-lora" in the field model'),
    });
  });

  it('never replace fields that Broomwagon sets', async () => {
    const engineFields = { max_tokens: 1_000_000, stream: false, request_id: 'mine' };
    await generate('vllm', { text: 'p', engineFields }, [{ choices: [{ text: 'a', finish_reason: 'stop' }] }]);
    expect(calls[0]!.body).toMatchObject({ max_tokens: 16, stream: true, request_id: 'x'.repeat(32) });
  });

  it('are tokenized with the prompt to resume, and images are resumed as messages', async () => {
    const done = [{ choices: [{ text: 'b', delta: {}, token_ids: [2], finish_reason: 'stop' }] }];
    const made = { tokenIds: [1], text: 'a', tokenCount: 1 };
    const question = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }];
    await generate('vllm', { messages: question, engineFields: { tools: [1] } }, done, made);
    const asked = calls.filter(({ path }) => path !== '/detokenize');
    expect(asked.map(({ path }) => path)).toEqual(['/tokenize', '/v1/completions']);
    expect(asked[0]!.body).toMatchObject({ messages: question, tools: [1], model: 'base' });
    expect(asked[1]!.body).toMatchObject({ prompt: [7, 8, 1] });

    server!.close();
    calls = [];
    const result = await generate('vllm', { messages: MESSAGES }, done, made);
    expect(calls.map(({ path }) => path)).toEqual(['/v1/chat/completions']);
    expect(calls[0]!.body).toMatchObject({
      messages: [...MESSAGES, { role: 'assistant', content: 'a' }],
      continue_final_message: true,
    });
    expect(result.resumedBy).toBe('text');
  });
});

it.each([
  ['vllm', { text: 'a', engineFields: { cache_salt: 'mine' } }, '/v1/completions', { cache_salt: '17.mine' }],
  ['vllm', { messages: [{ role: 'user', content: 'a' }] }, '/v1/chat/completions', { cache_salt: '17' }],
  ['sglang', { text: 'a', engineFields: { extra_key: 'mine' } }, '/generate', { extra_key: '17.mine' }],
  ['sglang', { messages: [{ role: 'user', content: 'a' }] }, '/v1/chat/completions', { cache_salt: '17' }],
] as const)('puts the salt of the lease before a salt of the caller: %s %j', async (dialect, prompt, path, body) => {
  const end = dialect === 'sglang' ? { text: '', meta_info: { finish_reason: { type: 'stop' } } } : {};
  await generate(
    dialect,
    prompt as unknown as Prompt,
    [{ ...end, choices: [{ finish_reason: 'stop' }] }],
    undefined,
    '17',
  );
  expect(calls.at(-1)).toMatchObject({ path, body });
});

describe('the session of a request', () => {
  const END = { choices: [{ delta: { content: 'a' }, text: 'a', finish_reason: 'stop' }], text: 'a', meta_info: {} };
  const about = { model_path: 'base', version: '0.5.17', incremental_streaming_output: true };
  const SGLANG_END = {
    text: 'a',
    output_ids: [1],
    meta_info: { finish_reason: { type: 'stop' }, completion_tokens: 1 },
  };

  it.each<[EngineDialect, string, Prompt, object, string | undefined]>([
    ['sglang', 'with a cache that counts sessions', { promptTokenIds: [1] }, { enable_session_radix_cache: true }, 's'],
    ['sglang', 'with this cache, for a chat', { messages: MESSAGES }, { enable_session_radix_cache: true }, 's'],
    ['sglang', 'without this cache', { promptTokenIds: [1] }, { enable_session_radix_cache: false }, undefined],
    ['sglang', 'of an older release', { promptTokenIds: [1] }, {}, undefined],
    ['vllm', '', { promptTokenIds: [1] }, { enable_session_radix_cache: true }, undefined],
  ])('is sent to an engine of %s %s as its report says', async (dialect, _, prompt, flags, expected) => {
    const end = 'messages' in prompt || dialect === 'vllm' ? END : SGLANG_END;
    const info = { ...about, ...flags };
    await generate(dialect, prompt, [end], undefined, undefined, { sessionId: 's', info });
    expect(calls.at(-1)!.body.session_id).toBe(expected);
  });
});
