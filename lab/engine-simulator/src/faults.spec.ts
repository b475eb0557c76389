import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { BroomwagonError, type ErrorCode } from '@broomwagon/contracts';
import { createEngineAdapter, engineRequestId, type EngineAdapterOptions } from '@broomwagon/engines';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSimulator } from './simulator';
import { inEngine, inject, startEngine, fetchState } from './test-engine';
import { detectEngine } from '../../../libs/engines/src/detect-engine';

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
  const request = { engineRequestId: engineRequestId('f', `${++attempts}`), prompt: { text: 'fail' }, maxTokens: 500 };
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
    ['error-429', 'ENGINE_BUSY'],
    ['error-400', 'ENGINE_REJECTED'],
    ['html', 'ENGINE_PROTOCOL'],
    ['close', 'ENGINE_ERROR'],
  ] as const)('with %s makes a call end with %s', async (kind, code: ErrorCode) => {
    // The fault hits twice, since a call is repeated if its closed connection had been used before.
    await inject(simulator.url, { kind, count: 2 });
    const { error, tokens } = await failing();
    expect([error.code, tokens]).toEqual([code, 0]);
  });

  it.each([
    ['close-mid-stream', 'ENGINE_ERROR'],
    ['end-mid-stream', 'ENGINE_ERROR'],
    ['error-in-stream', 'ENGINE_ERROR'],
    ['long-line', 'ENGINE_PROTOCOL'],
  ] as const)('with %s makes a call end with %s, after the tokens that had arrived', async (kind, code: ErrorCode) => {
    await inject(simulator.url, { kind, afterTokens: 40 });
    const { error, tokens } = await failing();
    expect([error.code, tokens]).toEqual([code, 40]);
  });

  it('by silence before the first token makes a call end with ENGINE_STALLED', async () => {
    await inject(simulator.url, { kind: 'hang' });
    const { error } = await failing({ firstTokenTimeoutMs: 100 });
    expect(error.code).toBe('ENGINE_STALLED');
  });

  it('by silence in the middle makes a call end with ENGINE_STALLED; tokens stay, the request is gone', async () => {
    await inject(simulator.url, { kind: 'stall', afterTokens: 10 });
    const { error, tokens } = await failing({ stallTimeoutMs: 150 });
    expect([error.code, tokens, error.retryable]).toEqual(['ENGINE_STALLED', 10, true]);
  });

  it('by not listening makes a call end with ENGINE_UNREACHABLE', async () => {
    await expect(detectEngine('http://127.0.0.1:1')).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
    await expect(
      createEngineAdapter('vllm', 'http://127.0.0.1:1', { model: 'm' }).generate({
        engineRequestId: engineRequestId('f', `${++attempts}`),
        prompt: { text: 'x' },
        maxTokens: 1,
      }),
    ).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
  });

  it('with unhealthy makes a health check end with ENGINE_ERROR', async () => {
    await inject(simulator.url, { kind: 'unhealthy' });
    await expect(createEngineAdapter('vllm', simulator.url).health()).rejects.toMatchObject({ code: 'ENGINE_ERROR' });
  });
});

describe('a server that is no engine', () => {
  let server: Server;
  let url: string;
  /** Writes a stream; true if the stream must stay open. */
  let answer: (write: (chunk: Buffer | string) => boolean, socket: Writable) => unknown;
  /** Handles a body; true if it has answered. */
  let onBody: ((body: Record<string, unknown>, response: ServerResponse) => boolean) | undefined;
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const body = await text(request);
      if (request.method !== 'POST') {
        response.end(`<html>${'It works! '.repeat(100)}</html>`);
        return;
      }
      if (onBody?.(JSON.parse(body), response)) return;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (answer((chunk) => response.write(chunk), response) !== true) response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const request = { engineRequestId: engineRequestId('n', '1'), prompt: { text: 'x' }, maxTokens: 9 };

  it('is not taken for any of the three dialects; the error has the start of its answer', async () => {
    const failure = await detectEngine(url).catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ code: 'ENGINE_PROTOCOL' });
    const { message } = failure as Error;
    expect(message).toContain('answers, but not as vLLM, SGLang or an OpenAI-compatible server');
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
    const result = adapter.generate(request, { onTokens: ({ text }) => (seen += text) });
    await expect(result).rejects.toMatchObject({ code: 'ENGINE_ERROR', retryable: true });
    expect(seen).toBe('a');
  });

  it.each([
    ['named by the request', { model: 'none' }, { error: { message: 'The model `none` does not exist.' } }, 'REJECTED'],
    ['of the server', undefined, { error: { message: 'The model `m` does not exist.' } }, 'ERROR'],
    ['named, but the path is not there', { model: 'none' }, { detail: 'Not Found' }, 'ERROR'],
  ])('answers 404 for a model %s', async (_, engineFields, said, code) => {
    onBody = (__, response) => {
      response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(said));
      return true;
    };
    const adapter = createEngineAdapter('vllm', url, { model: 'm' });
    const answer = adapter.generate({ ...request, prompt: { text: 'x', engineFields } });
    await expect(answer).rejects.toMatchObject({ code: `ENGINE_${code}` });
    onBody = undefined;
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

  it.each([
    [400, 'ENGINE_REJECTED'],
    [429, 'ENGINE_BUSY'],
    [500, 'ENGINE_ERROR'],
    [undefined, 'ENGINE_ERROR'],
  ])('ends with an error object of code %s in the stream: %s', async (status, code) => {
    answer = (write) => void write(`data: {"error":{"message":"no","code":${status ?? null}}}\n\n`);
    await expect(createEngineAdapter('vllm', url, { model: 'm' }).generate(request)).rejects.toMatchObject({ code });
  });

  it('sends keep-alive comments and nothing else: ENGINE_STALLED', async () => {
    let timer: NodeJS.Timeout | undefined;
    answer = (write) => {
      timer = setInterval(() => write(': ping\n\n'), 20);
      return true;
    };
    const adapter = createEngineAdapter('vllm', url, { model: 'm', firstTokenTimeoutMs: 150 });
    await expect(adapter.generate(request)).rejects.toMatchObject({ code: 'ENGINE_STALLED', retryable: true });
    clearInterval(timer);
  });

  it('sends 100 MB on one line: ENGINE_PROTOCOL after the first MiB, the rest never read', async () => {
    let sentBytes = 0;
    answer = (write, socket) => {
      const piece = Buffer.alloc(262_144, 'x');
      write('data: ');
      const more = (): void => {
        if (socket.destroyed || sentBytes >= 100_000_000) return;
        sentBytes += piece.length;
        if (write(piece)) setImmediate(more);
        else socket.once('drain', more);
      };
      more();
      return true;
    };
    await expect(createEngineAdapter('vllm', url, { model: 'm' }).generate(request)).rejects.toMatchObject({
      code: 'ENGINE_PROTOCOL',
    });
    // Only the buffers of both sides were filled.
    expect(sentBytes).toBeLessThan(32_000_000);
  });

  it('refuses the older name of the budget in a chat: the adapter uses the newer name from then on', async () => {
    const bodies: Record<string, unknown>[] = [];
    onBody = (body, response) => {
      bodies.push(body);
      if (body.max_completion_tokens !== undefined) return false;
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"Unsupported parameter: use max_completion_tokens instead"}}');
      return true;
    };
    answer = (write) => void write('data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n');
    const adapter = createEngineAdapter('openai', url, { model: 'm' });
    const chat = { ...request, prompt: { messages: [{ role: 'user', content: 'x' }] } };
    for (const _ of [1, 2]) expect(await adapter.generate(chat)).toMatchObject({ text: 'hi', finishReason: 'stop' });
    expect(bodies.map((body) => [body.max_tokens, body.max_completion_tokens])).toEqual([
      [9, undefined],
      [undefined, 9],
      [undefined, 9],
    ]);
    onBody = undefined;
  });
});

describe('an abort by id', () => {
  it.each(['vllm', 'sglang'] as const)('that overtakes its request on the way to %s stops it', async (dialect) => {
    const engine = await startEngine(dialect);
    const stop = new AbortController();
    const request = { engineRequestId: engineRequestId('o', dialect), prompt: { text: 'x' }, maxTokens: 500 };
    await inject(engine.url, { kind: 'late' });
    const result = createEngineAdapter(dialect, engine.url).generate(request, { signal: stop.signal });
    await expect.poll(async () => (await fetchState(engine.url)).late).toBe(1);
    stop.abort();
    expect(await result).toMatchObject({ finishReason: 'aborted' });
    // The request has arrived by now.
    const { running, waiting, requests } = await fetchState(engine.url);
    expect([running + waiting, requests.received]).toEqual([0, 1]);
    await engine.close();
  });

  it.each([
    [200, 0],
    // A server without the route: only the closed connection ends its request.
    [404, 0],
    [500, 1],
  ])('answered %s: unanswered %s times', async (status, expected) => {
    const server = createServer((call, response) => {
      if (call.url?.endsWith('/abort_requests')) response.writeHead(status).end();
      else
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"choices":[{"text":"a"}]}\n\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const stop = new AbortController();
    const request = { engineRequestId: engineRequestId('s', `${status}`), prompt: { text: 'x' }, maxTokens: 9 };
    let unanswered = 0;
    const options = { signal: stop.signal, onTokens: () => stop.abort(), onUnstopped: () => void unanswered++ };
    const result = await createEngineAdapter('vllm', url, { model: 'm' }).generate(request, options);
    expect([result.finishReason, unanswered]).toEqual(['aborted', expected]);
    server.closeAllConnections();
    server.close();
  });
});
