import { BroomwagonError } from '@broomwagon/contracts';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { type KeyedRequest, ReplyStore } from './reply.store';

const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const store = new ReplyStore(redis, prefix);
afterAll(async () => {
  redis.disconnect();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

const lost = new BroomwagonError('TIMEOUT', 'no reply');
/** A request with a key. Its reply contains `isInterrupted`, as passed to the request. */
const keyed = (key: string, changes: Partial<KeyedRequest> = {}): KeyedRequest => ({
  scope: 'token',
  key,
  request: { body: 1 },
  process: (isInterrupted) => Promise.resolve({ isInterrupted }),
  mayHaveEffect: (error) => error === lost,
  ...changes,
});
const failing = (failure: Error) => ({ process: () => Promise.reject(failure) });
const catchCode = (call: Promise<unknown>) => call.catch((error: BroomwagonError) => error.code);

describe('a repeat', () => {
  it('gets the first reply, in its scope only', async () => {
    const reply = { isInterrupted: false };
    expect(await store.once(keyed('first'))).toEqual({ reply, isRepeat: false });
    expect(await store.once(keyed('first'))).toEqual({ reply, isRepeat: true });
    expect(await store.once(keyed('first', { scope: 'another' }))).toEqual({ reply, isRepeat: false });
    expect(await catchCode(store.once(keyed('first', { request: { body: 2 } })))).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(await store.once(keyed('first'))).toEqual({ reply, isRepeat: true });
  });

  it('gets `isInterrupted` after an error that leaves the outcome open, and after no other error', async () => {
    expect(await catchCode(store.once(keyed('lost', failing(lost))))).toBe('TIMEOUT');
    expect((await store.once(keyed('lost'))).reply).toEqual({ isInterrupted: true });
    expect(await catchCode(store.once(keyed('refused', failing(new BroomwagonError('FENCED', 'no')))))).toBe('FENCED');
    expect((await store.once(keyed('refused'))).reply).toEqual({ isInterrupted: false });
  });

  it('gets `isInterrupted` when the first reply was too large to be stored', async () => {
    await store.once(keyed('large', { process: () => Promise.resolve({ text: 'x'.repeat(20_000) }) }));
    expect((await store.once(keyed('large'))).reply).toEqual({ isInterrupted: true });
  });
});

it('leaves mark and record to a replica that has taken over from a stalled one', async () => {
  let mark = '';
  const process = async () => {
    [mark = ''] = await redis.keys(`${prefix}:replies:*:running`);
    await redis.set(mark, 'another replica');
    return { from: 'the stalled replica' };
  };
  await store.once(keyed('stall', { process }));
  expect(await redis.get(mark)).toBe('another replica');
  expect(await catchCode(store.once(keyed('stall')))).toBe('REQUEST_IN_PROGRESS');
  await redis.del(mark);
  expect((await store.once(keyed('stall'))).reply).toEqual({ isInterrupted: true });
});

it('bounds the keys of a scope, without keys that are free again', async () => {
  const small = new ReplyStore(redis, prefix, 2);
  const use = (key: string, changes: Partial<KeyedRequest> = {}) =>
    small.once(keyed(key, { scope: 'busy', ...changes }));
  await use('1');
  for (const key of ['a', 'b', 'c']) await catchCode(use(key, failing(new BroomwagonError('FENCED', 'no'))));
  await use('2');
  const refusal = await use('3').catch((error: BroomwagonError) => error);
  expect(refusal).toMatchObject({ code: 'RATE_LIMITED' });
  expect((refusal as BroomwagonError).retryAfterMs).toBeGreaterThan(80_000_000);
  expect((await use('1')).isRepeat).toBe(true);
  expect((await small.once(keyed('3', { scope: 'another' }))).isRepeat).toBe(false);
});
