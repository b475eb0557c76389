import { BroomwagonError } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Dispatcher } from 'undici';
import { EngineStream } from '../http/engine-stream';
import { StopSource } from '../stop-signal';
import { OpenAiChunkReader } from './openai-chunk-reader';
import { streamGeneration } from './stream-generation';

const EVENT_STREAM = [Buffer.from('content-type'), Buffer.from('text/event-stream')];

/**
 * The call is stopped before the engine has sent its headers. Timers are fake: time passes only when a test advances
 * it.
 */
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts one call, and records its actions in order. */
function begin(answerOfAbort: boolean | undefined) {
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
  const call = { path: '/', body: {}, headers: {}, reader: new OpenAiChunkReader(), abortById };
  const result = streamGeneration(http, call, {}, { signal: stop, onUnstopped: () => done.push('unstopped') });
  void result.then(({ finishReason }) => done.push(finishReason));
  return {
    done,
    stop: () => stop.abort(),
    send: () => stream.onConnect(() => done.push('closed')),
    answer: (status: number) => stream.onHeaders(status, EVENT_STREAM, () => undefined),
    fail: () => stream.onError(new Error('broken')),
  };
}
/** Runs all pending promises; no time passes. */
const settled = () => vi.advanceTimersByTimeAsync(0);

it.each([200, 500])('the abort by id is repeated once the engine has answered %s', async (status) => {
  const { done, send, stop, answer } = begin(true);
  send();
  stop();
  await settled();
  expect(done).toEqual(['abort']);
  answer(status);
  await settled();
  expect(done).toEqual(['abort', 'closed', 'abort', 'aborted']);
});

it('the wait for an engine that does not answer ends after 3 s', async () => {
  const { done, send, stop } = begin(true);
  send();
  stop();
  await vi.advanceTimersByTimeAsync(2_999);
  expect(done).toEqual(['abort']);
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toEqual(['abort', 'closed', 'abort', 'aborted']);
});

it('the wait for an answer ends when the connection fails', async () => {
  const { done, send, stop, fail } = begin(true);
  send();
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
  const { done, send, stop } = begin(answerOfAbort);
  send();
  stop();
  await settled();
  expect(done).toEqual(['abort', 'closed', 'abort', ...more, 'aborted']);
});

it('a request that waits for a connection is never sent', async () => {
  const { done, send, stop } = begin(true);
  stop();
  await settled();
  expect(done).toEqual(['abort', 'aborted']);
  send();
  expect(done).toEqual(['abort', 'aborted', 'closed']);
});

it('a stopped request has no answer to wait for until it is sent, also when it is to be sent again', () => {
  const stream = new EngineStream(() => true, 1_000);
  const run = () => void stream.run({ dispatch: () => true } as unknown as Dispatcher, { path: '/', method: 'POST' });
  run();
  expect(stream.abortOnceAnswered('stop')).toBe(false);
  stream.onConnect(() => undefined);
  run();
  expect(stream.abortOnceAnswered('stop')).toBe(false);
  stream.onConnect(() => undefined);
  expect(stream.abortOnceAnswered('stop')).toBe(true);
});
