import { BroomwagonError } from '@broomwagon/contracts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Dispatcher } from 'undici';
import { EngineStream } from '../http/engine-stream';
import { StopSource } from '../stop-signal';
import { OpenAiChunkReader } from './openai-chunk-reader';
import type { EngineMemory } from './pace-meter';
import { streamGeneration } from './stream-generation';

const EVENT_STREAM = [Buffer.from('content-type'), Buffer.from('text/event-stream')];

/**
 * The call is stopped before the engine has sent its headers. Timers are fake: time passes only when a test advances
 * it.
 */
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts one call, and records its actions in order. */
function begin(answerOfAbort: boolean | undefined, memory: EngineMemory = {}) {
  const done: string[] = [];
  const stop = new StopSource();
  let stream!: EngineStream;
  const http = {
    baseUrl: 'http://engine',
    stream: (take: (chunk: Buffer) => boolean) => (stream = new EngineStream(take, 1_000)),
    receive: () => stream.run({ dispatch: () => true } as unknown as Dispatcher, { path: '/', method: 'POST' }),
    transportError: () => new BroomwagonError('ENGINE_ERROR', 'broken'),
  };
  const abortById = () => {
    done.push('abort');
    return Promise.resolve(answerOfAbort);
  };
  const call = { path: '/', body: {}, headers: {}, reader: new OpenAiChunkReader(), abortById, memory };
  const lost: number[] = [];
  const report = { onUnstopped: () => done.push('unstopped'), onLost: (count: number) => lost.push(count) };
  const result = streamGeneration(http, call, {}, { signal: stop, ...report });
  void result.then(
    ({ finishReason, tokenIds = [] }) => done.push([finishReason, ...tokenIds].join(' ')),
    ({ code }: BroomwagonError) => done.push(code),
  );
  return {
    done,
    lost,
    stop: () => stop.abort(),
    connect: () => stream.onConnect(() => done.push('closed')),
    answer: (status: number) => stream.onHeaders(status, EVENT_STREAM, () => undefined),
    /** Sends a chunk with these ids. */
    chunk: (ids: number[], reason?: string) => {
      const choice = { text: ids.map((id) => ` t${id}`).join(''), token_ids: ids, finish_reason: reason ?? null };
      stream.onData(Buffer.from(`data: ${JSON.stringify({ choices: [choice] })}\n\n`));
    },
    complete: () => stream.onComplete(),
    fail: () => stream.onError(new Error('broken')),
  };
}
/** Runs all pending promises; no time passes. */
const settled = () => vi.advanceTimersByTimeAsync(0);

it('the abort by id is repeated once the engine has begun its stream, which is read to its end', async () => {
  const { done, connect, stop, answer, chunk, complete } = begin(true);
  connect();
  stop();
  await settled();
  expect(done).toEqual(['abort']);
  answer(200);
  await settled();
  expect(done).toEqual(['abort', 'abort']);
  chunk([1, 2], 'abort');
  complete();
  await settled();
  expect(done).toEqual(['abort', 'abort', 'aborted 1 2']);
});

it('the connection is closed once the engine has refused a stopped request', async () => {
  const { done, connect, stop, answer } = begin(true);
  connect();
  stop();
  await settled();
  answer(500);
  await settled();
  expect(done).toEqual(['abort', 'closed', 'abort', 'aborted']);
});

it('the wait for an engine that does not answer ends after 3 s', async () => {
  const { done, connect, stop } = begin(true);
  connect();
  stop();
  await vi.advanceTimersByTimeAsync(2_999);
  expect(done).toEqual(['abort']);
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toEqual(['abort', 'closed', 'abort', 'aborted']);
});

it('the wait for an answer ends when the connection fails', async () => {
  const { done, connect, stop, fail } = begin(true);
  connect();
  stop();
  await settled();
  fail();
  await settled();
  expect(done).toEqual(['abort', 'abort', 'aborted']);
});

it.each([
  ['no abort by id', false, []],
  ['an abort by id that fails', undefined, ['unstopped']],
])('the connection is closed at once on an engine with %s', async (_, answerOfAbort, more) => {
  const { done, connect, stop } = begin(answerOfAbort);
  connect();
  stop();
  await settled();
  expect(done).toEqual(['abort', 'closed', 'abort', ...more, 'aborted']);
});

it('a request that waits for a connection is never sent', async () => {
  const { done, connect, stop } = begin(true);
  stop();
  await settled();
  expect(done).toEqual(['abort', 'aborted']);
  connect();
  expect(done).toEqual(['abort', 'aborted', 'closed']);
});

it('a stopped request counts as sent once it has a connection, also when it is sent again', () => {
  const stream = new EngineStream(() => true, 1_000);
  const run = () => void stream.run({ dispatch: () => true } as unknown as Dispatcher, { path: '/', method: 'POST' });
  for (let times = 0; times < 2; times++) {
    run();
    expect(stream.isSent).toBe(false);
    stream.onConnect(() => undefined);
    expect(stream.isSent).toBe(true);
  }
});

describe('a call with tokens', () => {
  function beginWithTokens(answerOfAbort: boolean | undefined, memory: EngineMemory = {}) {
    const call = begin(answerOfAbort, memory);
    call.connect();
    call.answer(200);
    call.chunk([1]);
    call.stop();
    return call;
  }

  it('is aborted once by its id, and has the tokens of the last chunk', async () => {
    const { done, chunk, complete } = beginWithTokens(true);
    await settled();
    expect(done).toEqual(['abort']);
    chunk([2, 3]);
    chunk([4], 'abort');
    complete();
    await settled();
    expect(done).toEqual(['abort', 'aborted 1 2 3 4']);
  });

  it.each([
    ['[DONE] alone', (call: ReturnType<typeof begin>) => call.complete(), 'aborted 1 2'],
    ['a broken connection', (call: ReturnType<typeof begin>) => call.fail(), 'aborted 1 2'],
  ])('keeps its tokens when the abort ends the stream with %s', async (_, end, expected) => {
    const call = beginWithTokens(true);
    call.chunk([2]);
    end(call);
    await settled();
    expect(call.done.at(-1)).toBe(expected);
  });

  it('ends with the end of its response if the end comes before the abort', async () => {
    const { done, chunk, complete } = beginWithTokens(true);
    chunk([2], 'stop');
    complete();
    await settled();
    expect(done).toEqual(['abort', 'stop 1 2']);
  });

  it.each([
    ['no abort by id', false, []],
    ['an abort by id that fails', undefined, ['unstopped']],
  ])('is closed at once on an engine with %s', async (_, answerOfAbort, more) => {
    const { done } = beginWithTokens(answerOfAbort);
    await settled();
    expect(done).toEqual(['abort', 'closed', 'abort', ...more, 'aborted 1']);
  });

  it('is closed after 3 s on an engine that ignores the abort, and the next call at once', async () => {
    const memory: EngineMemory = {};
    const { done, chunk } = beginWithTokens(true, memory);
    await settled();
    chunk([2]);
    await vi.advanceTimersByTimeAsync(2_999);
    expect(done).toEqual(['abort']);
    await vi.advanceTimersByTimeAsync(1);
    expect(done).toEqual(['abort', 'closed', 'abort', 'aborted 1 2']);
    const next = beginWithTokens(true, memory);
    await settled();
    expect(next.done).toEqual(['closed', 'abort', 'aborted 1']);
  });

  it('teaches nothing about aborts if the engine stands still', async () => {
    const memory: EngineMemory = {};
    const { done } = beginWithTokens(true, memory);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(done).toEqual(['abort', 'closed', 'abort', 'aborted 1']);
    expect(memory.ignoresAborts).toBeUndefined();
  });
});

describe('tokens that the engine has not sent', () => {
  /** Sends 1 token, and 64 tokens a second later. */
  async function beginCollected(answerOfAbort?: boolean) {
    const call = begin(answerOfAbort);
    call.connect();
    call.answer(200);
    call.chunk([0]);
    await vi.advanceTimersByTimeAsync(1_000);
    call.chunk(Array.from({ length: 64 }, (_, index) => index + 1));
    await vi.advanceTimersByTimeAsync(500);
    return call;
  }

  it('are estimated by the pace of a stream that breaks', async () => {
    const call = await beginCollected();
    call.fail();
    await settled();
    // The second chunk may be read up to 100 ms after its arrival.
    expect(call.done.at(-1)).toBe('ENGINE_ERROR');
    expect(call.lost).toHaveLength(1);
    expect(call.lost[0]).toBeGreaterThanOrEqual(20);
    expect(call.lost[0]).toBeLessThanOrEqual(32);
  });

  it('are estimated if the engine has no abort by id', async () => {
    const call = await beginCollected(false);
    call.stop();
    await settled();
    expect([call.done.at(-1)?.startsWith('aborted'), call.lost.length]).toEqual([true, 1]);
  });

  it('are none once the engine has ended the stream', async () => {
    const call = await beginCollected(true);
    call.stop();
    call.chunk([65, 66], 'abort');
    call.complete();
    await settled();
    expect([call.done.at(-1)?.endsWith('64 65 66'), call.lost]).toEqual([true, []]);
  });
});
