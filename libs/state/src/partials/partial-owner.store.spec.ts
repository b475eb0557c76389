import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, type TestStore } from '../routing/routing-store.fixture';
import { type PartialClaim, PartialOwnerStore } from './partial-owner.store';
import { hashOfIdentity, PartialStore } from './partial.store';

const identity = hashOfIdentity('t\nr');
let test: TestStore;
let store: PartialOwnerStore;
let first: { workerId: string; workerEpoch: string };
let second: typeof first;
beforeEach(async () => {
  test = openTestStore();
  store = new PartialOwnerStore(test.runner);
  [first, second] = [await test.worker('w1'), await test.worker('w2')];
});
afterEach(() => test.close());

const claim = (worker: typeof first, generation: string, more: Partial<PartialClaim> = {}) =>
  store.claim(test.pool, { identity, generation, digest: 'd', expiresMs: 60_000, ...worker, ...more });
const release = (generation: string, keepsSaved = false) =>
  store.release(test.pool, { identity, generation, keepsSaved });
const save = async (partial: string, piece?: number) => {
  const saves = new PartialStore(test.redis, test.root.slice(0, test.root.indexOf(':{')));
  return (await saves.save(test.pool, [{ identity: 't\nr', partial, piece }], 60_000))[0]?.message;
};

it('lets a request have one generation, and a waiting repeat starts none after its end', async () => {
  expect(await claim(first, 'a')).toEqual({ state: 'claimed' });
  expect(await claim(first, 'a')).toEqual({ state: 'claimed' });
  expect(await claim(second, 'b')).toEqual({ state: 'held' });
  expect(await claim(second, 'b', { digest: 'other' })).toEqual({ state: 'other' });
  await release('b');
  expect(await claim(second, 'b', { isWaiting: true })).toEqual({ state: 'held' });
  await release('a');
  expect(await claim(second, 'b', { isWaiting: true })).toEqual({ state: 'ended' });
  expect(await claim(second, 'b')).toEqual({ state: 'claimed' });
});

it('lets a repeat take over, with the saved tokens, from a generation that no client reads', async () => {
  await claim(first, 'a');
  await save('{"tokens":[1]}');
  await claim(first, 'a', { isUnread: true });
  await claim(first, 'a', { isUnread: false });
  expect(await claim(second, 'b')).toEqual({ state: 'held' });
  await claim(first, 'a', { isUnread: true });
  expect(await claim(second, 'b', { digest: 'other' })).toEqual({ state: 'other' });
  expect(await claim(second, 'b')).toEqual({ state: 'claimed', from: 'a', saved: { tokens: [1] } });
  expect(await claim(first, 'a', { isUnread: true })).toEqual({ state: 'held' });
  // The release changes nothing, because another generation has the request.
  await release('a');
  expect(await claim(second, 'b')).toEqual({ state: 'claimed', saved: { tokens: [1] } });
});

it('lets a repeat take over from a worker epoch that has ended, whatever body its request had', async () => {
  await claim(first, 'a');
  const next = await test.worker('w1');
  expect(await claim(next, 'b', { digest: 'other', isWaiting: true })).toEqual({ state: 'claimed', from: 'a' });
  expect(await claim(first, 'a')).toEqual({ state: 'other' });
});

it('returns what later saves have added, which the next first save removes', async () => {
  await claim(first, 'a');
  expect(await save('[1]', 1)).toBe('Redis has lost the saves before');
  expect(await claim(first, 'a')).toEqual({ state: 'claimed' });
  for (const [partial, piece] of [['[1]'], ['[2]', 1], ['[3]', 2]] as const) {
    expect(await save(partial, piece)).toBeUndefined();
  }
  expect(await claim(first, 'a')).toEqual({ state: 'claimed', saved: [1], pieces: [[2], [3]] });
  expect(await save('[5]', 4)).toBe('Redis has lost the saves before');
  expect(await save('[6]')).toBeUndefined();
  expect(await claim(first, 'a')).toEqual({ state: 'claimed', saved: [6] });
  await save('[7]', 1);
  await release('a');
  expect(await test.redis.keys(`${test.root}:partial:*`)).toEqual([]);
});

it('removes the saved tokens with the claim, or keeps them for a repeat', async () => {
  await claim(first, 'a');
  await save('{"tokens":[1]}');
  await release('a', true);
  expect(await claim(second, 'b')).toEqual({ state: 'claimed', saved: { tokens: [1] } });
  await release('b');
  expect(await claim(second, 'c')).toEqual({ state: 'claimed' });
});
