import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EngineDialect, Prompt } from '@broomwagon/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import type { GenerationRequest } from '../engine-adapter';

const PROMPT_TOKENS = 30;
const CONTEXT_TOKENS = 100;
const VLLM = `maximum context length is ${CONTEXT_TOKENS} tokens`;

let bodies: Record<string, unknown>[] = [];
let servers: Server[] = [];
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers = [];
  bodies = [];
});

const budget = (body: Record<string, unknown>): number =>
  Number(body.max_tokens ?? (body.sampling_params as { max_new_tokens: number }).max_new_tokens);

/** Generates on an engine that refuses budgets above 69 tokens with this message. */
async function generate(
  dialect: EngineDialect,
  refusal: string,
  more: Partial<GenerationRequest> & { prompt: Prompt },
) {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(404).end();
      const body = JSON.parse(text) as Record<string, unknown>;
      if (request.url === '/tokenize') {
        return void response.end(JSON.stringify({ tokens: Array.from({ length: PROMPT_TOKENS }, (_, id) => id) }));
      }
      bodies.push(body);
      if (budget(body) >= CONTEXT_TOKENS - PROMPT_TOKENS) {
        return void response.writeHead(400).end(JSON.stringify({ error: { message: refusal } }));
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const meta = { completion_tokens: 1, prompt_tokens: PROMPT_TOKENS, finish_reason: { type: 'length' } };
      const choice = { text: 'a', delta: { content: 'a' }, token_ids: [7], finish_reason: 'length' };
      const event = { choices: [choice], text: 'a', output_ids: [7], meta_info: meta };
      response.end(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const adapter = createEngineAdapter(dialect, url, { model: 'base' });
  return adapter.generate({ engineRequestId: 'x'.repeat(32), maxTokens: 90, clipsBudget: true, ...more });
}

const text: Prompt = { text: 'a prompt' };
const messages: Prompt = { messages: [{ role: 'user', content: 'a prompt' }] };

describe('a budget that does not fit beside the prompt', () => {
  it.each<[string, EngineDialect, string, Prompt]>([
    ['vLLM', 'vllm', `${VLLM}. However, you requested 120 tokens (30 in the messages, 90 in the completion).`, text],
    [
      'vLLM 0.10',
      'vllm',
      `max_tokens is too large: 90. This model's ${VLLM} and your request has 30 input tokens`,
      text,
    ],
    // The tokenizer of the engine stops at the limit.
    [
      'vLLM 0.25',
      'vllm',
      `${VLLM}. However, you requested 90 output tokens and your prompt contains at least 11 input tokens`,
      messages,
    ],
    [
      'vLLM 0.25 without a count',
      'vllm',
      'max_tokens=90 cannot be greater than max_model_len=max_total_tokens=100',
      text,
    ],
    [
      'SGLang',
      'sglang',
      `Requested token count exceeds the model's maximum context length of 100 tokens. You requested a total of 120 tokens: 30 tokens from the input messages and 90 tokens for the completion.`,
      text,
    ],
  ])('is clipped to what the context of %s leaves', async (_, dialect, refusal, prompt) => {
    expect((await generate(dialect, refusal, { prompt })).finishReason).toBe('length');
    expect(bodies.map(budget)).toEqual([90, CONTEXT_TOKENS - PROMPT_TOKENS - 1]);
  });

  it('of token ids is clipped by their number', async () => {
    const prompt = { promptTokenIds: Array.from({ length: 40 }, () => 7) };
    await generate('vllm', `${VLLM}.`, { prompt });
    expect(budget(bodies[1]!)).toBe(59);
  });

  it('is refused for a caller that has not asked to clip it, and for another reason', async () => {
    await expect(generate('vllm', `${VLLM}.`, { prompt: text, clipsBudget: undefined })).rejects.toThrow(VLLM);
    await expect(generate('vllm', 'no such parameter', { prompt: text })).rejects.toThrow('no such parameter');
    expect(bodies).toHaveLength(2);
  });

  it('of a prompt that fills the context is refused, and a response that fills the context ends', async () => {
    const refusal = `${VLLM} and your request has 99 input tokens`;
    await expect(generate('vllm', refusal, { prompt: text })).rejects.toThrow('99 input tokens');
    const made = { text: 'made', tokenCount: 4 };
    expect(await generate('vllm', refusal, { prompt: text, made })).toMatchObject({
      finishReason: 'length',
      tokenCount: 0,
      resumedBy: 'text',
    });
    expect(bodies.map(budget)).toEqual([90, 86]);
  });
});
