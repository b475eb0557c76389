import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EngineDialect, Prompt, SamplingParameters } from '@broomwagon/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import type { TokenIncrement } from '../engine-adapter';

interface Call {
  path: string;
  body: Record<string, unknown>;
}
let calls: Call[] = [];
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  calls = [];
});

/** Runs one generation on a server that streams these events, and decodes token id `n` as `<n>`. */
async function generate(
  dialect: EngineDialect,
  prompt: Prompt,
  sampling: SamplingParameters,
  events: object[],
  canDecode = true,
): Promise<TokenIncrement[]> {
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(404).end();
      const body = JSON.parse(text) as Record<string, unknown>;
      calls.push({ path: request.url!, body });
      if (request.url === '/detokenize') {
        const decoded = `<${(body.tokens as number[]).join()}>`;
        const answer = dialect === 'vllm' ? { prompt: decoded } : { text: decoded };
        return void response.writeHead(canDecode ? 200 : 404).end(JSON.stringify(answer));
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const adapter = createEngineAdapter(dialect, url, { model: 'base' });
  const increments: TokenIncrement[] = [];
  const request = { engineRequestId: 'x'.repeat(32), prompt, sampling, maxTokens: 16 };
  await adapter.generate(request, { onTokens: (increment) => increments.push(increment) });
  return increments;
}

const MESSAGES = [{ role: 'user', content: 'q' }];
const TOOLS = [{ type: 'function', function: { name: 'f' } }];
const completion = (text: string, ids: number[], more: object = {}) => ({
  choices: [{ text, token_ids: ids, finish_reason: 'stop', ...more }],
});
const chat = (content: string, ids: number[], more: object = {}) => ({
  choices: [{ delta: { content }, token_ids: ids, finish_reason: 'stop', ...more }],
});
const sglang = (text: string, ids: number[], matched: string | number) => ({
  text,
  output_ids: ids,
  meta_info: { completion_tokens: ids.length, prompt_tokens: 1, finish_reason: { type: 'stop', matched } },
});
const INCLUDED = { include_stop_str_in_output: true };
const UNTRIMMED = { no_stop_trim: true };

describe('a stop text', () => {
  it.each<[string, EngineDialect, Prompt, object, object]>([
    ['vLLM', 'vllm', { promptTokenIds: [1] }, completion('a END', [2, 3], { stop_reason: 'END' }), INCLUDED],
    ['chats of vLLM', 'vllm', { messages: MESSAGES }, chat('a END', [2, 3], { stop_reason: 'END' }), INCLUDED],
    ['SGLang', 'sglang', { promptTokenIds: [1] }, sglang('a END', [2, 3], 'END'), { sampling_params: UNTRIMMED }],
    ['chats of SGLang', 'sglang', { messages: MESSAGES }, chat('a END', [], { matched_stop: 'END' }), UNTRIMMED],
  ])('is asked of %s, and named with the last increment', async (_, dialect, prompt, event, asked) => {
    const increments = await generate(dialect, prompt, { stop: ['END'], stopTokenIds: [9] }, [event]);
    expect(increments.at(-1)).toMatchObject({ text: 'a END', matchedStop: 'END' });
    const { body } = calls.find(({ path }) => path !== '/detokenize' && path !== '/tokenize')!;
    expect(body).toMatchObject(asked);
    expect(body.sampling_params ?? body).toMatchObject({ stop: ['END'], stop_token_ids: [9] });
  });

  it.each<[string, EngineDialect, Prompt, SamplingParameters, boolean]>([
    ['there is none', 'vllm', { promptTokenIds: [1] }, { stopTokenIds: [9] }, true],
    [
      'calls of tools are parsed',
      'vllm',
      { messages: MESSAGES, engineFields: { tools: TOOLS } },
      { stop: ['END'] },
      true,
    ],
    [
      'the texts of stop tokens are unknown',
      'vllm',
      { promptTokenIds: [1] },
      { stop: ['END'], stopTokenIds: [9] },
      false,
    ],
    ['the dialect has no parameter for it', 'openai', { text: 'q' }, { stop: ['END'] }, true],
  ])('is not asked if %s', async (_, dialect, prompt, sampling, canDecode) => {
    const event = prompt.messages === undefined ? completion : chat;
    const increments = await generate(dialect, prompt, sampling, [event('a', [2], { stop_reason: 'END' })], canDecode);
    expect(increments.at(-1)).toMatchObject({ text: 'a' });
    expect(increments.at(-1)!.matchedStop).toBeUndefined();
    expect(calls.at(-1)!.body).not.toHaveProperty('include_stop_str_in_output');
  });
});

describe('the text of a stop token that the engine sends with stop texts', () => {
  const sampling = { stop: ['END'], stopTokenIds: [9] };
  const special = { skip_special_tokens: false };

  it.each<[string, object | undefined, object, string]>([
    ['alone', undefined, completion('<9>', [9], { stop_reason: 9 }), ''],
    ['after others', undefined, completion('ab<9>', [2, 3, 9], { stop_reason: 9 }), 'ab'],
    ['that is skipped', undefined, completion('ab', [2, 3, 9], { stop_reason: 9 }), 'ab'],
    ['that ends every response', special, completion('</s>', [4]), ''],
  ])('is removed: %s', async (_, engineFields, event, text) => {
    const prompt = {
      promptTokenIds: [1],
      ...(engineFields && { engineFields: engineFields as Prompt['engineFields'] }),
    };
    const increments = await generate('vllm', prompt, sampling, [event]);
    expect(increments.at(-1)).toMatchObject({ text, isLast: true });
  });

  it('is removed from the content of a chat', async () => {
    const increments = await generate('vllm', { messages: MESSAGES }, sampling, [
      chat('a<9>', [2, 9], { stop_reason: 9 }),
    ]);
    expect(increments.at(-1)).toMatchObject({ text: 'a', choice: { delta: { content: 'a' } } });
  });
});
