import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { readToEnd } from '@broomwagon/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { SnapshotStore } from '../snapshots/snapshot.store';
import { LongtailStore } from '../longtail/longtail.store';
import { WeightStore } from '../weights/weight.store';
import { KeySnapshot } from './key-snapshot.fixture';
import { TestPools } from './test-pools.fixture';

const test = new TestPools();
const { redis, rounds } = test;
const longtail = new LongtailStore(test.runner);
const snapshots = new SnapshotStore(test.runner);
const weights = new WeightStore(test.runner);
const sync = { syncId: 'sync', version: 2 };
const job = 'job';
const policy: TailPolicy = { name: 'resume', overProvision: 2 };
let round: Awaited<ReturnType<TestPools['open']>>;
let claims: Claim[];

beforeEach(async () => {
  await test.fresh();
  round = await test.open({ policy, neededGroups: 3, newGroups: 6 });
  claims = await test.claim(12);
});
afterAll(() => test.close());

const finish = async (...groupIds: string[]) => {
  for (const claim of claims.filter(({ groupId }) => groupIds.includes(groupId))) await test.complete(claim);
};
const page = (cursor?: string, limit = 128, stamp?: string) =>
  rounds.results(test.pool, { job, roundId: 'r1', cursor, limit, stamp });
const listIds = (groups: readonly { groupId: string }[]) => groups.map(({ groupId }) => groupId);
const close = (cursor: string, groups?: { groupId: string; digest: string }[]) =>
  rounds.close(test.pool, { ...round, cursor, groups });
const changed = { code: 'GENERATION_CHANGED', retryable: false };
const readGroups = (groups: readonly { groupId: string; digest?: string }[]) =>
  groups.map(({ groupId, digest }) => ({ groupId, digest: digest! }));

describe('the cursor of results', () => {
  it('continues after the groups that were read, and returns the same page to a repeat', async () => {
    await finish('g0', 'g1');
    const first = await page(undefined, 1);
    expect(listIds(first.groups)).toEqual(['g0']);
    const second = await page(first.cursor);
    expect(listIds(second.groups)).toEqual(['g1']);
    expect(await page(first.cursor)).toMatchObject({ groups: second.groups, cursor: second.cursor });
    expect(await page(second.cursor)).toMatchObject({ groups: [], cursor: second.cursor, complete: false });
    await finish('g2');
    expect(await page(second.cursor)).toMatchObject({ groups: [{ groupId: 'g2' }], complete: true });
  });

  it('continues in the middle of a group, and is refused when the first samples have changed', async () => {
    await test.fresh();
    await test.open({ policy: { name: 'wait', overProvision: 1 }, neededGroups: 1, samples: 200 });
    for (let given = await test.claim(128); given.length > 0; given = await test.claim(128)) {
      for (const claim of given) await test.complete(claim);
    }
    const half = await page();
    expect(half.groups).toMatchObject([{ more: true }]);
    expect(half.groups[0]!.digest).toBeUndefined();
    const rest = await page(half.cursor);
    expect(half.groups[0]!.samples.length + rest.groups[0]!.samples.length).toBe(200);
    const { cursor } = await readToEnd((from) => page(from));
    expect(cursor).toBe(rest.cursor);
    await redis.hset(test.key('request:job/g0/3'), 'segments', '[]');
    await expect(page(half.cursor)).rejects.toMatchObject({ ...changed, field: 'cursor' });
  });

  it('is refused when Redis has other groups before it, while equal groups have equal digests', async () => {
    await finish('g0');
    const before = await KeySnapshot.of(redis, test.key(''));
    await finish('g1', 'g2');
    const read = await page();
    await before.restore();
    await finish('g3');
    await finish('g2');
    await expect(page(read.cursor)).rejects.toMatchObject({ ...changed, field: 'cursor' });
    const again = await page();
    expect(listIds(again.groups)).toEqual(['g0', 'g3', 'g2']);
    const digests = new Map(again.groups.map(({ groupId, digest }) => [groupId, digest]));
    expect(read.groups.map(({ groupId, digest }) => digests.get(groupId) === digest)).toEqual([true, false, true]);
  });

  it('is refused when it is a number or another position', async () => {
    await expect(page('1')).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'cursor' });
    const { cursor } = await page();
    for (const position of ['1', '99999999999999']) {
      await expect(page(cursor.replace('.0.', `.${position}.`))).rejects.toMatchObject(changed);
    }
  });
});

describe('the close of a round', () => {
  it('needs the cursor after exactly its groups, and is safe to repeat with it', async () => {
    await finish('g0', 'g1');
    const early = await page();
    await finish('g2');
    await expect(close(early.cursor, readGroups(early.groups))).rejects.toMatchObject({
      code: 'ROUND_MISMATCH',
      details: { acceptedGroups: 3, readGroups: 2, missing: ['g2'], extra: [], different: [] },
    });
    const part = await page(undefined, 1);
    await expect(close(part.cursor)).rejects.toMatchObject({ code: 'ROUND_MISMATCH', details: { readGroups: 1 } });
    expect(await rounds.status(test.pool, { job })).toMatchObject({ state: 'completed' });
    const { cursor } = await page();
    const closed = await close(cursor);
    expect(closed).toMatchObject({ stepsTrained: 1, trainedGroups: 3, trainedRequests: 6 });
    expect(await close(cursor)).toEqual(closed);
    await expect(close(early.cursor)).rejects.toMatchObject({ code: 'ROUND_MISMATCH' });
  });

  it('reports missing, extra and different groups when Redis was set back', async () => {
    await finish('g0');
    const before = await KeySnapshot.of(redis, test.key(''));
    await finish('g1', 'g2');
    const read = await page();
    await before.restore();
    for (const claim of claims.filter(({ groupId }) => groupId === 'g1')) await test.complete(claim, 5);
    await finish('g5');
    await page();
    await expect(close(read.cursor, readGroups(read.groups))).rejects.toMatchObject({
      code: 'ROUND_MISMATCH',
      details: { missing: ['g5'], extra: ['g2'], different: ['g1'] },
    });
    expect(await rounds.jobStatus(test.pool, { job })).toMatchObject({ stepsTrained: 0, openRoundId: 'r1' });
  });

  it('is possible without results', async () => {
    await redis.zadd(test.key('rounds:deadlines'), 1, 'job/r1');
    await rounds.expire(test.pool);
    const { cursor, complete } = await page();
    expect(complete).toBe(true);
    expect(await close(cursor)).toMatchObject({ trainedGroups: 0 });
  });
});

describe('the stamp of a reply', () => {
  it('is of the same generation as long as Redis loses nothing', async () => {
    const { stamp } = await rounds.due(test.pool);
    await finish('g0', 'g1', 'g2');
    expect((await page(undefined, 9, stamp)).stamp.split('.')[0]).toBe(stamp.split('.')[0]);
    expect((await rounds.due(test.pool, { stamp })).renewed).toBeUndefined();
  });

  it('is refused once when it is later than the last transition in Redis', async () => {
    const before = await KeySnapshot.of(redis, test.key(''));
    await finish('g0', 'g1', 'g2');
    const { cursor, stamp } = await page();
    await before.restore();
    const trainer = { ...round, stamp };
    const refusal = { ...changed, field: 'stamp' };
    await expect(rounds.status(test.pool, trainer)).rejects.toMatchObject(refusal);
    await expect(close(cursor)).rejects.toMatchObject({ code: 'ROUND_NOT_COMPLETED' });
    await expect(rounds.close(test.pool, { ...trainer, cursor })).rejects.toMatchObject(refusal);
    await expect(rounds.progress(test.pool, { job, stamp })).rejects.toMatchObject(refusal);
    await expect(rounds.submit(test.pool, trainer, [])).rejects.toMatchObject(refusal);
    await expect(rounds.take(test.pool, { job, roundId: 'lost while it was opened', stamp })).rejects.toMatchObject(
      refusal,
    );
    const told = await rounds.status(test.pool, trainer).catch((error: { details: { stamp: string } }) => error);
    const { details } = told as { details: { stamp: string } };
    expect(await rounds.status(test.pool, { ...round, stamp: details.stamp })).toMatchObject({ state: 'open' });
    expect((await rounds.due(test.pool, { stamp: details.stamp })).renewed).toBeUndefined();
  });

  const trainer = { job, trainerEpoch: '' };
  /** Calls of a trainer that are not about rounds, with a stamp. */
  const others: [string, (stamp?: string) => Promise<{ stamp: string }>][] = [
    ['job.status', (stamp) => rounds.jobStatus(test.pool, { job, stamp })],
    ['longtail.drop', (stamp) => longtail.drop(test.pool, { ...trainer, stamp, reason: 'r', groupIds: ['g9', 'g8'] })],
    ['longtail.drop of all', (stamp) => longtail.drop(test.pool, { ...trainer, stamp, reason: 'r' })],
    ['job.snapshot', (stamp) => snapshots.save(test.pool, { ...trainer, stamp, tag: 'tag' })],
    ['job.restore', (stamp) => snapshots.restore(test.pool, { ...trainer, stamp, tag: 'tag' })],
    ['weights.begin', (stamp) => weights.begin(test.pool, { ...sync, mode: 'keep', deadlineMs: 60_000, stamp })],
    ['weights.status', (stamp) => weights.status(test.pool, { stamp })],
    [
      'weights.commit',
      (stamp) => weights.end(test.pool, { syncId: 'sync', outcome: 'committed', reason: 'asked', stamp }),
    ],
  ];
  it('is in all replies to a trainer, and is refused in each call when it is too late', async () => {
    await finish('g0', 'g1', 'g2');
    for (const groupId of ['g3', 'g4', 'g5']) {
      for (const claim of claims.filter((one) => one.groupId === groupId)) await test.fail(claim);
    }
    await rounds.cut(test.pool, { ...round, cursor: 0 });
    await test.readAndClose(round);
    for await (const _ of rounds.whileMore('fold', test.pool, round));
    Object.assign(trainer, round);
    let { stamp } = await rounds.due(test.pool);
    for (const [, call] of others) {
      for (const _ of [1, 2]) {
        const reply = await call(stamp);
        expect(Number(reply.stamp.split('.')[1])).toBeGreaterThanOrEqual(Number(stamp.split('.')[1]));
        ({ stamp } = reply);
        if ('trainerEpoch' in reply) Object.assign(trainer, { trainerEpoch: reply.trainerEpoch });
      }
    }
    const [generation, sequence] = stamp.split('.');
    const future = `${generation}.${Number(sequence) + 1}`;
    for (const [name, call] of others) {
      await expect(call(future), name).rejects.toMatchObject({ ...changed, field: 'stamp' });
    }
  });

  it('is refused at the end of a sample whose tokens were checked before Redis was set back', async () => {
    const [claim] = claims as [Claim];
    const { stamp } = await rounds.due(test.pool);
    const [generation, sequence] = stamp.split('.');
    const late = `${generation}.${Number(sequence) + 1}`;
    const before = await test.states();
    await expect(test.complete(claim, 3, late)).rejects.toMatchObject({ ...changed, field: 'stamp' });
    expect(await test.states()).toEqual(before);
    const seen = rounds.seenStamp(test.pool);
    expect(seen).not.toBe(stamp);
    expect(await test.complete(claim, 3, seen)).toMatchObject({ state: 'finished' });
    expect(await test.complete(claim, 3, stamp), 'a repeat').toMatchObject({ state: 'finished' });
  });

  it('is remembered by a process, as the latest one of all replies', async () => {
    const { stamp } = await rounds.due(test.pool);
    await finish('g0', 'g1', 'g2');
    expect(rounds.seenStamp(test.pool)).toBe(stamp);
    const { stamp: later } = await rounds.jobStatus(test.pool, { job });
    expect(rounds.seenStamp(test.pool)).toBe(later);
    test.runner.stamps.note(test.pool, stamp);
    expect(rounds.seenStamp(test.pool)).toBe(later);
  });

  it('is renewed when Redis is another process', async () => {
    const { stamp } = await rounds.due(test.pool);
    await redis.hset(test.key('meta'), 'generationOf', 'another process');
    expect(await rounds.due(test.pool, { stamp })).toMatchObject({ renewed: true });
    expect((await rounds.due(test.pool)).renewed).toBeUndefined();
    await expect(page(undefined, 9, stamp)).rejects.toMatchObject(changed);
  });
});
