import { afterEach, beforeEach, expect, it } from 'vitest';
import { RemovalStore } from '../removals/removal.store';
import { openTestStore } from '../routing/routing-store.fixture';
import { RoundStore } from '../rounds';
import { KeySnapshot } from '../rounds/key-snapshot.fixture';
import { toTrajectoryId, TrajectoryStore, turnNumber } from './trajectory.store';

const id = toTrajectoryId('a session');
const about = { sessionId: 'a session', tokenId: 't', job: 'j', createdAtMs: 1 };
let test: ReturnType<typeof openTestStore>;
let store: TrajectoryStore;
beforeEach(async () => {
  test = openTestStore();
  store = new TrajectoryStore(test.runner);
  await store.open(test.pool, { id, about: JSON.stringify(about) });
});
afterEach(() => test.close());

const begin = async (identity: string, generation: string, hasOwnId = false) =>
  (await store.begin(test.pool, { id, tokenId: 't', identity, generation, hasOwnId })).turn;
const buildRef = (turn: number, generation: string) => `redis~${test.pool}~j~trajectory~${id}~${turn}.${generation}`;
async function record(turn: number, generation: string, parent?: number, parentSequence?: string): Promise<string> {
  const args = { id, turn, generation, ref: buildRef(turn, generation), parent, parentSequence };
  const more = { record: JSON.stringify({ turn, of: generation }), sequence: `1|d|${generation}` };
  return (await store.record(test.pool, { ...args, ...more })).outcome;
}
const freed = async () =>
  (await new RemovalStore(test.runner).look(test.pool, { deleteAfterMs: 1, lossWindowMs: 1, maxBytes: 1 })).unweighed;

it('opens a session once, and numbers its turns', async () => {
  const other = { ...about, job: 'other' };
  expect(await store.open(test.pool, { id, about: JSON.stringify(other) })).toMatchObject({ about, made: false });
  expect([await begin('a', 'g1'), await begin('b', 'g2'), await begin('a', 'g1')]).toEqual([1, 2, 1]);
  const more = { identity: 'a', generation: 'g', hasOwnId: true };
  expect(await store.begin(test.pool, { id: 'unknown', tokenId: 't', ...more })).toEqual({});
  const foreign = await store.begin(test.pool, { id, tokenId: 'other', ...more });
  expect(foreign).toEqual({ job: 'j', refusal: 'FORBIDDEN' });
});

it('has sampling parameters of a session for its token only, the last that this token has set', async () => {
  const find = (tokenId: string, ofId = id) => store.sampling(test.pool, { id: ofId, tokenId });
  const open = (tokenId: string, sampling?: string) =>
    store.open(test.pool, { id, about: JSON.stringify({ ...about, tokenId }), sampling });
  expect(await find('t')).toEqual({ isUsed: false });
  expect((await open('t', '{"stop":[]}')).samplingAgeMs).toBe(0);
  expect(await open('t')).not.toHaveProperty('samplingAgeMs');
  expect(await open('other', '{"top_k":1}')).not.toHaveProperty('samplingAgeMs');
  expect(await find('t')).toEqual({ isUsed: true, sampling: { stop: [] } });
  expect([await find('other'), await find('t', 'unknown')]).toEqual([{ isUsed: true }, { isUsed: true }]);
  expect((await open('t', '{"top_k":-1}')).samplingAgeMs).toBeGreaterThanOrEqual(0);
  expect((await store.read(test.pool, { id })).sampling).toEqual({ top_k: -1 });
  expect((await store.list(test.pool, {})).sessions).toEqual([{ about, turns: 0, sampling: { top_k: -1 } }]);
  await store.delete(test.pool, { id });
  await open('t');
  expect(await find('t')).toEqual({ isUsed: true });
});

it('records a turn once: a repeat replaces it, and payloads that are not recorded are freed', async () => {
  await begin('a', 'g1');
  expect(await begin('a', 'g2')).toBe(1);
  expect(await record(1, 'g1')).toBe('replaced');
  expect(await record(1, 'g2')).toBe('recorded');
  expect(await record(1, 'g2')).toBe('recorded');
  expect(await freed()).toEqual([buildRef(1, 'g1')]);
  // An equal request is another sample now, but a request with its own id is a repeat until a later turn extends it.
  expect(await begin('a', 'g3')).toBe(2);
  expect(await begin('own', 'g4', true)).toBe(3);
  expect(await record(3, 'g4')).toBe('recorded');
  expect(await begin('own', 'g5', true)).toBe(3);
  expect(await record(3, 'g5')).toBe('recorded');
  expect(await freed()).toContain(buildRef(3, 'g4'));
  await begin('next', 'g6');
  expect(await record(4, 'g6', 3, '1|d|g5')).toBe('recorded');
  await begin('own', 'g7', true);
  expect(await record(3, 'g7')).toBe('replaced');
  const { turns } = await store.read(test.pool, { id });
  expect(turns).toEqual([
    { turn: 1, of: 'g2' },
    { turn: 3, of: 'g5' },
    { turn: 4, of: 'g6' },
  ]);
});

it('does not record a turn whose parent was recorded again meanwhile', async () => {
  await begin('a', 'g1', true);
  await record(1, 'g1');
  await begin('b', 'g2');
  await begin('a', 'g3', true);
  await record(1, 'g3');
  expect(await record(2, 'g2', 1, '1|d|g1')).toBe('changed');
  expect((await store.sequences(test.pool, { id })).sequences).toEqual(['1|d|g3', '']);
});

it('returns the reason why a turn is missing', async () => {
  await begin('a', 'g1');
  await begin('b', 'g2');
  await store.miss(test.pool, { id, turn: 2, generation: 'g2', error: 'PAYLOAD_STORE_FULL' });
  await store.miss(test.pool, { id, turn: 1, generation: 'other', error: 'ENGINE_ERROR' });
  const { missing } = await store.read(test.pool, { id });
  expect(missing!.map(({ turn, reason }) => [turn, reason])).toEqual([
    [1, 'UNFINISHED'],
    [2, 'PAYLOAD_STORE_FULL'],
  ]);
  await begin('b', 'g3');
  expect((await store.read(test.pool, { id })).missing![1]!.reason).toBe('UNFINISHED');
});

it('reports turns that may be lost when Redis was set back, and never repeats the number of a turn', async () => {
  const start = async (identity: string) => {
    const more = { identity, generation: identity, hasOwnId: false, stamp: store.seenStamp(test.pool) };
    return store.begin(test.pool, { id, tokenId: 't', ...more });
  };
  const stamps = new Set([(await start('a')).stamp]);
  await record(1, 'a');
  const numbers = new Set([1]);
  for (const round of [1, 2]) {
    const before = await KeySnapshot.of(test.redis, `${test.root}:trajectory:`);
    numbers.add((await start(`lost-${round}`)).number!);
    await before.restore();
    // Redis now looks like a restarted process with the earlier data.
    await test.redis.hset(`${test.root}:meta`, 'generationOf', `process ${round}`);
    const { turn, number, stamp } = await start(`next-${round}`);
    expect(turn).toBe(round + 1);
    numbers.add(number!);
    stamps.add(stamp!.split('.')[0]!);
    await record(turn!, `next-${round}`);
  }
  expect(numbers.size).toBe(5);
  expect(stamps.size).toBe(3);
  const { missing, turns, setBacks } = await store.read(test.pool, { id });
  expect(turns!.map(({ turn }) => numbers.has(turnNumber(turn, setBacks)))).toEqual([true, true, true]);
  expect(missing!.map(({ reason }) => reason)).toEqual(['SET_BACK', 'SET_BACK']);
  for (const { turn } of missing!) expect(numbers).toContain(turn);
  await test.redis.hset(`${test.root}:meta`, 'generationOf', 'one more');
  const read = await store.read(test.pool, { id });
  expect(read.missing).toHaveLength(3);
  expect((await store.read(test.pool, { id })).missing).toEqual(read.missing);
});

it('numbers a session opened soon after a set-back as if earlier turns of it may be lost', async () => {
  const other = toTrajectoryId('another session');
  const open = (isDrawn: boolean, ofId = other) =>
    store.open(test.pool, { id: ofId, about: JSON.stringify(about), isDrawn, stamp: store.seenStamp(test.pool) });
  const beginTurn = async (identity: string, ofId = other) => {
    const turn = { identity, generation: identity, hasOwnId: false };
    return (await store.begin(test.pool, { id: ofId, tokenId: 't', ...turn })).number!;
  };
  const before = await KeySnapshot.of(test.redis, `${test.root}:trajectory:`);
  const numbers: number[] = [];
  for (const round of [0, 1, 2]) {
    expect((await open(false)).made).toBe(true);
    for (const turn of [1, 2]) numbers.push(await beginTurn(`${round}-${turn}`));
    const { missing } = await store.read(test.pool, { id: other });
    const lost = missing!.filter(({ reason }) => reason === 'SET_BACK').map(({ turn }) => turn);
    expect(lost).toEqual(round === 0 ? [] : [1]);
    await before.restore();
    // Numbers grow by the milliseconds between set-backs; set-backs of a real store are further apart than in this test.
    const restoredAtMs = Date.now();
    await expect.poll(() => Date.now() - restoredAtMs, { interval: 1 }).toBeGreaterThan(numbers.length);
    await test.redis.hset(`${test.root}:meta`, 'generationOf', `process ${round}`);
  }
  expect(new Set(numbers).size).toBe(6);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
  // A random id names no earlier session. Long after a set-back, no client continues a lost session.
  await open(true);
  expect(await beginTurn('drawn')).toBe(1);
  await test.redis.hset(`${test.root}:meta`, 'generationSinceMs', Date.now() - 700_000);
  const late = toTrajectoryId('late');
  await open(false, late);
  expect(await beginTurn('late', late)).toBe(1);
});

it('accepts 256 turns', async () => {
  await test.redis.hset(`${test.root}:trajectory:${id}`, 'turns', 255);
  expect([await begin('a', 'g1'), await begin('b', 'g2')]).toEqual([256, undefined]);
  expect(await record(256, 'g1')).toBe('recorded');
  expect((await store.read(test.pool, { id })).turns).toHaveLength(1);
});

it('removes a session with its payloads, which belong to it until then', async () => {
  await begin('a', 'g1');
  await record(1, 'g1');
  const owns = async (ref: string) =>
    (await new RoundStore(test.runner).owns(test.pool, { job: 'j', owner: `trajectory/${id}`, ref })).owned;
  expect([await owns(buildRef(1, 'g1')), await owns(buildRef(1, 'g2'))]).toEqual([true, false]);
  expect(await store.expire(test.pool, { idleMs: 60_000 })).toEqual({ more: false });
  expect(await store.delete(test.pool, { id, tokenId: 'other' })).toEqual({ deleted: false });
  expect(await store.delete(test.pool, { id, tokenId: 't' })).toEqual({ deleted: true });
  expect(await store.delete(test.pool, { id })).toEqual({ deleted: false });
  expect(await freed()).toEqual([buildRef(1, 'g1')]);
  expect(await record(1, 'g1')).toBe('deleted');
  await store.open(test.pool, { id, about: JSON.stringify(about) });
  expect(await store.expire(test.pool, { idleMs: -1 })).toEqual({ more: true });
  expect(await store.read(test.pool, { id })).toEqual({});
});
