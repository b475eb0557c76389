import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BroomwagonError, type ErrorCode } from '@broomwagon/contracts';
import { createEngineAdapter, detectEngine, engineRequestId, type EngineAdapterOptions } from '@broomwagon/engines';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSimulator } from './simulator';
import { inEngine, inject, startEngine } from './test-engine';

let simulator: RunningSimulator & { url: string };
let attempts = 0;

beforeAll(async () => {
  simulator = await startEngine('vllm');
});
afterEach(async () => {
  await inject(simulator.url, { kind: 'none' });
  await expect.poll(() => inEngine(simulator.url)).toBe(0);
});
afterAll(() => simulator.close());

/** Runs one attempt that must fail; returns the error and the tokens seen before it. */
async function failing(options?: EngineAdapterOptions): Promise<{ error: BroomwagonError; tokens: number }> {
  let tokens = 0;
  const request = { engineRequestId: engineRequestId('f', ++attempts), prompt: { text: 'fail' }, maxTokens: 500 };
  const failure: unknown = await createEngineAdapter('vllm', simulator.url, options)
    .generate(request, { onTokens: (increment) => (tokens += increment.tokenCount) })
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(failure).toBeInstanceOf(BroomwagonError);
  return { error: failure as BroomwagonError, tokens };
}

describe('an engine that fails', () => {
  it.each([
    ['error-500', 'ENGINE_ERROR'],
    ['error-429', 'ENGINE_ERROR'],
    ['error-400', 'ENGINE_REJECTED'],
    ['html', 'ENGINE_PROTOCOL'],
    ['close', 'ENGINE_ERROR'],
  ] as const)('%s is %s', async (kind, code: ErrorCode) => {
    await inject(simulator.url, { kind });
    const { error, tokens } = await failing();
    expect([error.code, tokens]).toEqual([code, 0]);
  });

  it.each([
    ['close-mid-stream', 'ENGINE_ERROR'],
    ['error-in-stream', 'ENGINE_ERROR'],
    ['long-line', 'ENGINE_PROTOCOL'],
  ] as const)('%s is %s, after the tokens that had come', async (kind, code: ErrorCode) => {
    await inject(simulator.url, { kind, afterTokens: 40 });
    const { error, tokens } = await failing();
    expect([error.code, tokens]).toEqual([code, 40]);
  });

  it('goes silent before the first token: ENGINE_STALLED', async () => {
    await inject(simulator.url, { kind: 'hang' });
    const { error } = await failing({ firstTokenTimeoutMs: 100 });
    expect(error.code).toBe('ENGINE_STALLED');
  });

  it('goes silent in the middle: ENGINE_STALLED, the tokens kept, the request gone from the engine', async () => {
    await inject(simulator.url, { kind: 'stall', afterTokens: 10 });
    const { error, tokens } = await failing({ stallTimeoutMs: 150 });
    expect([error.code, tokens, error.retryable]).toEqual(['ENGINE_STALLED', 10, true]);
  });

  it('is not there: ENGINE_UNREACHABLE', async () => {
    await expect(detectEngine('http://127.0.0.1:1')).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
    await expect(
      createEngineAdapter('vllm', 'http://127.0.0.1:1', { model: 'm' }).generate({
        engineRequestId: engineRequestId('f', ++attempts),
        prompt: { text: 'x' },
        maxTokens: 1,
      }),
    ).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
  });

  it('is unhealthy', async () => {
    await inject(simulator.url, { kind: 'unhealthy' });
    await expect(createEngineAdapter('vllm', simulator.url).health()).rejects.toMatchObject({ code: 'ENGINE_ERROR' });
  });
});

describe('a server that is no engine', () => {
  let server: Server;
  let url: string;
  let answer: (write: (chunk: Buffer | string) => void) => void;
  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume();
      if (request.method === 'GET') {
        response.end(`<html>${'It works! '.repeat(100)}</html>`);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      answer((chunk) => response.write(chunk));
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const request = { engineRequestId: engineRequestId('n', 1), prompt: { text: 'x' }, maxTokens: 9 };

  it('is told from all three dialects, with what it said, cut short', async () => {
    const failure = await detectEngine(url).catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ code: 'ENGINE_PROTOCOL' });
    const { message } = failure as Error;
    expect(message).toContain('answers, but as none of vLLM, SGLang, OpenAI');
    expect(message).toContain('It works!');
    expect(message.length).toBeLessThan(400);
  });

  it('ends in the middle of a character: ENGINE_ERROR, nothing of the half event kept', async () => {
    const half = Buffer.from('data: {"choices":[{"text":"漢"}]}\n\n');
    answer = (write) => {
      write('data: {"choices":[{"text":"a","token_ids":[1]}]}\n\n');
      write(half.subarray(0, 28));
    };
    let seen = '';
    const adapter = createEngineAdapter('vllm', url, { model: 'm' });
    await expect(adapter.generate(request, { onTokens: ({ text }) => (seen += text) })).rejects.toMatchObject({
      code: 'ENGINE_ERROR',
      retryable: true,
    });
    expect(seen).toBe('a');
  });

  it('takes any chunking: many tokens in one, keep-alive comments, CRLF, a final usage chunk', async () => {
    answer = (write) => {
      write(': ping\r\n\r\n');
      write('data: {"choices":[{"text":"one two","token_ids":[1,2],"finish_reason":null}]}\r\n\r\n');
      write('data: {"choices":[{"text":"","token_ids":[],"finish_reason":"stop","stop_reason":"###"}]}\r\n\r\n');
      write('data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\r\n\r\ndata: [DONE]\r\n\r\n');
    };
    expect(await createEngineAdapter('vllm', url, { model: 'm' }).generate(request)).toMatchObject({
      text: 'one two',
      tokenIds: [1, 2],
      tokenCount: 2,
      finishReason: 'stop',
      stopReason: '###',
      usage: { promptTokens: 4, completionTokens: 2 },
    });
  });

  it('maps an error object with a 4xx code in the stream to ENGINE_REJECTED', async () => {
    answer = (write) => write('data: {"error":{"message":"too long","code":400}}\n\n');
    await expect(createEngineAdapter('vllm', url, { model: 'm' }).generate(request)).rejects.toMatchObject({
      code: 'ENGINE_REJECTED',
    });
  });
});
