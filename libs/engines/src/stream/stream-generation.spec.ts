import type { BroomwagonError } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { Dispatcher } from 'undici';
import type { TokenIncrement } from '../engine-adapter';
import { EngineStream } from '../http/engine-stream';
import type { ChunkReader } from './chunk-reader';
import { OpenAiChunkReader } from './openai-chunk-reader';
import { SglangChunkReader } from './sglang-chunk-reader';
import { streamGeneration } from './stream-generation';

const RUNS = 100 * inject('runsFactor');
const TEXTS = ['é', '漢字', '🙂', ' \\"quoted\\" ', '\\n', 'plain'];

/** Reads a stream that comes in these pieces; the connection breaks at the end if `broken`. */
function read(
  pieces: Uint8Array[],
  reader: ChunkReader,
  { broken = false, readsAtOnce = false, seenAfter = [] as string[] } = {},
) {
  const http = {
    baseUrl: 'http://engine',
    stream: (take: (chunk: Buffer) => boolean) => new EngineStream(take, 1_000),
    receive: async (stream: EngineStream) => {
      const ended = stream.run({ dispatch: () => true } as unknown as Dispatcher, { path: '/', method: 'POST' });
      stream.onHeaders(200, [Buffer.from('content-type'), Buffer.from('text/event-stream')], () => undefined);
      for (const piece of pieces) {
        stream.onData(Buffer.from(piece));
        seenAfter.push(seen);
      }
      if (broken) stream.onError(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
      else stream.onComplete();
      await ended;
    },
    transportError: (error: unknown) => error as BroomwagonError,
  };
  let seen = '';
  const call = { path: '/', body: {}, headers: {}, reader, memory: {}, abortById: () => Promise.resolve(true) };
  const options = { onTokens: ({ text }: TokenIncrement) => (seen += text), readsAtOnce: () => readsAtOnce };
  return streamGeneration(http, call, {}, options).then(
    (result) => ({ result, seen }),
    (error: unknown) => {
      const { code, message, details } = error as Partial<BroomwagonError>;
      return { error: code, message, details, seen };
    },
  );
}

function cutUp(bytes: Buffer, cuts: number[]): Uint8Array[] {
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
}

const dialects: Record<string, { event(texts: string[], index: number): string; reader(): ChunkReader }> = {
  completions: {
    event: (texts, index) =>
      `{"choices":[{"text":"${texts[index]}","token_ids":[${index}],"logprobs":{"token_logprobs":[-${index}.5]},` +
      `"finish_reason":${index === texts.length - 1 ? '"stop"' : 'null'}}]}`,
    reader: () => new OpenAiChunkReader(),
  },
  chat: {
    event: (texts, index) =>
      `{"choices":[{"delta":{"content":"${texts[index]}"},"finish_reason":${index === texts.length - 1 ? '"stop"' : 'null'}}],` +
      `"usage":{"prompt_tokens":3,"completion_tokens":${index + 1}}}`,
    reader: () => new OpenAiChunkReader(),
  },
  'generate, cumulative': {
    event: (texts, index) =>
      `{"text":"${texts.slice(0, index + 1).join('')}","output_ids":[${texts.slice(0, index + 1).map((_, at) => at)}],` +
      `"meta_info":{"completion_tokens":${index + 1},"prompt_tokens":3,` +
      `"finish_reason":${index === texts.length - 1 ? '{"type":"stop"}' : 'null'}}}`,
    reader: () => new SglangChunkReader('whole'),
  },
};

describe.each(Object.entries(dialects))('a stream of %s', (_, { event, reader }) => {
  const stream = fc.record({
    texts: fc.array(fc.constantFrom(...TEXTS), { minLength: 1, maxLength: 6 }),
    ending: fc.constantFrom('\n', '\r\n'),
    cuts: fc.array(fc.nat(), { maxLength: 40 }),
  });

  it('gives the same result however the stream is split, read at once or together', async () => {
    await fc.assert(
      fc.asyncProperty(stream, async ({ texts, ending, cuts }) => {
        const events = texts.map(
          (__, index) => `: ping${ending}${ending}data: ${event(texts, index)}${ending}${ending}`,
        );
        const bytes = Buffer.from(`${events.join('')}data: [DONE]${ending}${ending}`);
        const whole = await read([bytes], reader());
        const expected = texts.map((text) => JSON.parse(`"${text}"`) as string).join('');
        expect(whole).toMatchObject({ seen: expected, result: { text: expected, finishReason: 'stop' } });
        expect(await read(cutUp(bytes, cuts), reader())).toEqual(whole);
        expect(await read(cutUp(bytes, cuts), reader(), { readsAtOnce: true })).toEqual(whole);
      }),
      { numRuns: RUNS },
    );
  });

  it('is read at once until its first token, and then together unless it is read at once', async () => {
    const pieces = ['first', 'second', 'third'].map((__, index, texts) =>
      Buffer.from(`data: ${event(texts, index)}\n\n`),
    );
    const together: string[] = [];
    const atOnce: string[] = [];
    await read(pieces, reader(), { seenAfter: together });
    expect(together).toEqual(['first', 'first', 'first']);
    await read(pieces, reader(), { readsAtOnce: true, seenAfter: atOnce });
    expect(atOnce).toEqual(['first', 'firstsecond', 'firstsecondthird']);
  });

  it('keeps the tokens of whole events when it breaks off anywhere, by an end or by a reset', async () => {
    await fc.assert(
      fc.asyncProperty(stream, fc.nat(), fc.boolean(), async ({ texts, ending, cuts }, at, broken) => {
        const events = texts.map((__, index) => `data: ${event(texts, index)}${ending}${ending}`);
        // The last event is left out: its finish reason would be the end of the stream.
        const bytes = Buffer.from(events.join('')).subarray(
          0,
          at % Buffer.byteLength(events.slice(0, -1).join('') + ' '),
        );
        const ended = (await read(cutUp(bytes, cuts), reader(), { broken })) as Partial<
          Record<'error' | 'seen', string>
        >;
        const seen = ended.seen!;
        if (broken) expect(ended.error).toBe('ECONNRESET');
        else expect(ended.error).toBe('ENGINE_ERROR');
        const ends = events.map((__, index) => Buffer.byteLength(events.slice(0, index + 1).join('')));
        const kept = texts.slice(0, ends.filter((end) => end <= bytes.length).length);
        const expected = kept.map((text) => JSON.parse(`"${text}"`) as string).join('');
        // The blank line after an event may have come or not.
        expect([expected, expected + JSON.parse(`"${texts[kept.length] ?? ''}"`)]).toContain(seen);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('how a stream may end', () => {
  const ending = (reason: string, more = ''): Uint8Array[] => [
    Buffer.from(`data: {"choices":[{"text":"a","token_ids":[1],"finish_reason":${reason}${more}}]}\n\n`),
  ];

  it.each([
    ['"stop"', 'stop', undefined],
    ['"length"', 'length', undefined],
    ['"abort"', 'aborted', 'abort'],
    ['"content_filter"', 'stop', 'content_filter'],
    ['"tool_calls"', 'stop', 'tool_calls'],
  ])('%s is %s', async (reason, finishReason, stopReason) => {
    const { result } = (await read(ending(reason), new OpenAiChunkReader())) as { result: object };
    expect(result).toMatchObject({ text: 'a', tokenIds: [1], finishReason, stopReason });
  });

  it('names the stop string or token that ended it', async () => {
    const stopped = await read(ending('"stop"', ',"stop_reason":7'), new OpenAiChunkReader());
    expect(stopped).toMatchObject({ result: { finishReason: 'stop', stopReason: 7 } });
  });

  it('with [DONE] and without a reason is an abort by the engine', async () => {
    const done = Buffer.from('data: [DONE]\n\n');
    const { result } = (await read([...ending('null'), done], new OpenAiChunkReader())) as { result: object };
    expect(result).toMatchObject({ text: 'a', tokenIds: [1], finishReason: 'aborted' });
  });

  const role = Buffer.from('data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n');

  it.each([
    ['nothing else', []],
    ['a role without tokens', [role]],
  ])('with [DONE] after %s is a failure', async (_, before) => {
    const ended = await read([...before, Buffer.from('data: [DONE]\n\n')], new OpenAiChunkReader());
    expect(ended).toMatchObject({ error: 'ENGINE_ERROR', seen: '' });
  });

  it.each([
    ['event: error\ndata: {"message":"KV load failed","type":"InternalServerError"}', 'ENGINE_ERROR', undefined],
    ['event: error\ndata: KV load failed', 'ENGINE_ERROR', undefined],
    ['event:error\ndata: {"error":{"message":"KV load failed","code":503}}', 'ENGINE_BUSY', 503],
    ['data: {"error":{"message":"KV load failed","code":500}}', 'ENGINE_ERROR', 500],
    ['data: {"error":{"message":"KV load failed","code":400}}', 'ENGINE_REJECTED', 400],
    ['data: {"error":"KV load failed"}', 'ENGINE_ERROR', undefined],
    ['data: {"object":"error","message":"KV load failed","code":429}', 'ENGINE_BUSY', 429],
    ['data: {"detail":"KV load failed"}', 'ENGINE_ERROR', undefined],
  ])('with %s is an error with the message and the status of the engine', async (event, error, status) => {
    for (const reader of [new OpenAiChunkReader(), new SglangChunkReader()]) {
      const bytes = Buffer.from(`${event}\n\ndata: [DONE]\n\n`);
      const ended = await read(
        [...bytes].map((byte) => Buffer.from([byte])),
        reader,
      );
      expect(ended).toMatchObject({ error, message: expect.stringContaining('«KV load failed»'), details: { status } });
    }
  });

  it('keeps the tokens before an error, and gives no field of the error to the choice', async () => {
    const event = Buffer.from('event: error\ndata: {"message":"KV load failed","type":"InternalServerError"}\n\n');
    const ended = await read([...ending('null'), event], new OpenAiChunkReader());
    expect(ended).toMatchObject({ error: 'ENGINE_ERROR', seen: 'a' });
    const other = Buffer.from('data: {"type":"ping","note":"not a chunk"}\n\n');
    const { result } = (await read([other, ...ending('"stop"')], new OpenAiChunkReader())) as { result: object };
    expect(result).toMatchObject({ text: 'a', engineFields: undefined });
  });

  it('reads numbers that JSON does not have as null', async () => {
    const event =
      '{"choices":[{"text":"NaN \\"-Infinity","token_ids":[1,2],"logprobs":{"token_logprobs":[-Infinity,-0.5]}';
    const bytes = Buffer.from(`data: ${event},"finish_reason":"stop","score":NaN}]}\n\n`);
    const { result } = (await read([bytes], new OpenAiChunkReader())) as { result: object };
    expect(result).toMatchObject({ text: 'NaN "-Infinity', logprobs: [null, -0.5] });
  });

  it.each([[], [Buffer.from('data: [DONE]')]])('without [DONE] and without a reason is a failure', async (...end) => {
    const ended = await read([...ending('null'), ...end], new OpenAiChunkReader());
    expect(ended).toMatchObject({ error: 'ENGINE_ERROR', seen: 'a' });
  });

  it('without [DONE] but with a reason is complete', async () => {
    const { result } = (await read(ending('"stop"'), new OpenAiChunkReader())) as { result: object };
    expect(result).toMatchObject({ text: 'a', finishReason: 'stop' });
  });

  it('is a failure when the engine reports one', async () => {
    expect(await read(ending('"error"'), new OpenAiChunkReader())).toMatchObject({ error: 'ENGINE_ERROR' });
  });
});
