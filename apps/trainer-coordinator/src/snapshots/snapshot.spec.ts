import { type Claim, type Epoch, isBroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import { attemptNumber, waitUntil } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../../../../libs/platform/src/failpoint';
import { CoordinatorFixture, type FixtureWorker, groups } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };
const job = 'job';

describe('job.snapshot and job.restore', () => {
  let fixture: CoordinatorFixture;
  let worker: FixtureWorker;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start();
  });
  afterAll(() => fixture.stop());
  beforeEach(async () => {
    fixture.freshPool();
    worker = await fixture.worker('w');
  });
  afterEach(() => setFailpoints(''));

  const save = (trainerEpoch: Epoch, tag: string) =>
    fixture.client.callWithRetry(fixture.pool, 'job.snapshot', { job, trainerEpoch, tag }, { deadlineMs: 10_000 });
  const restore = (tag: string, trainerEpoch?: Epoch) =>
    fixture.client.callWithRetry(fixture.pool, 'job.restore', { job, trainerEpoch, tag }, { deadlineMs: 10_000 });
  const listed = async () => (await fixture.call('job.snapshots', { job })).snapshots.map(({ tag }) => tag);
  const queued = async () => (await fixture.call('longtail.list', { job })).groups;
  const counts = async () => (await fixture.call('job.status', { job })).requests;

  /** Token payloads, by request. */
  const stored = new Map<string, string>();

  /** Trains a round of new groups. Groups that are not accepted keep one sample with a stored token payload. */
  async function step(fresh: ReturnType<typeof groups>, needed: number, trainerEpoch?: Epoch) {
    const policy = { ...POLICY, overProvision: fresh.length / needed };
    const opened = await fixture.open(job, {
      groupsPerStep: needed,
      remainingGroups: fresh.length,
      policy,
      trainerEpoch,
    });
    const round = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    for (let start = 0; start < fresh.length; start += 128) {
      await fixture.call('round.submit', { ...round, groups: fresh.slice(start, start + 128) });
    }
    const accepted = new Set(fresh.slice(0, needed).map(({ groupId }) => groupId));
    const later: Claim[] = [];
    for (let claims = await worker.claim(128); claims.length > 0; claims = await worker.claim(128)) {
      for (const claim of claims) {
        if (!accepted.has(claim.groupId)) later.push(claim);
        else await worker.complete(claim);
      }
    }
    for (const claim of later) {
      const payload = { job, requestId: claim.requestId, name: claim.attempt, chunkIndex: 0, chunkCount: 1 };
      const { ref } = await fixture.call('payload.put', { ...payload, data: 'AAAA' });
      const segment = { ...fixture.buildSegment(claim, 4), ref: ref! };
      stored.set(claim.requestId, ref!);
      await fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true, segment });
    }
    await fixture.close(round);
    await fixture.swept();
    return opened.trainerEpoch;
  }
  async function longStep(needed: number, trainerEpoch: Epoch) {
    const opened = await fixture.open(job, { groupsPerStep: needed, remainingGroups: 0, policy: POLICY, trainerEpoch });
    await worker.finishAll();
    await fixture.close({ job, roundId: opened.roundId, trainerEpoch });
    await fixture.swept();
  }
  const exists = (ref: string) =>
    fixture.call('payload.stat', { ref }).then(
      () => true,
      (error: unknown) => {
        if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) return false;
        throw error;
      },
    );

  it('restores the queue of step k with its payloads, in pages that any replica continues', async () => {
    const epoch = await step(groups(96), 6);
    const before = { queue: await queued(), counts: await counts() };
    expect(before.queue).toHaveLength(90);
    setFailpoints('coordinator.snapshot.between-pages=throw@1');
    const prompt = await fixture.promptRef(job, 'g7');
    const saved = { tag: 'step-1', step: 1, state: 'complete', groups: 90, requests: 180 };
    for (const _ of [1, 2]) expect(await save(epoch, 'step-1')).toMatchObject(saved);
    await longStep(90, epoch);
    await step(groups(3, 100), 3, epoch);
    expect(await counts()).toMatchObject({ trained: 198, unfinished: 0 });
    // The groups are trained and folded, but the snapshot has them.
    const refs = [prompt, stored.get('job/g7/1')!];
    expect(await Promise.all(refs.map(exists))).toEqual([true, true]);
    const trained = `*:payload:{${fixture.pool}/${job}}:item:g100~*`;
    await expect.poll(() => fixture.redis.keys(trained)).toEqual([]);

    setFailpoints('coordinator.restore.between-pages=throw@1');
    const restored = await restore('step-1', epoch);
    expect(restored).toEqual({
      tag: 'step-1',
      state: 'restored',
      trainerEpoch: expect.any(String),
      stepsTrained: 1,
      submittedGroups: 96,
      groups: 90,
      stamp: expect.any(String),
    });
    expect({ queue: await queued(), counts: await counts() }).toEqual(before);
    await expect(save(epoch, 'step-2')).rejects.toMatchObject({ code: 'FENCED' });
    await expect(restore('other', epoch)).rejects.toMatchObject({ code: 'FENCED' });

    // The rounds of later steps may be opened again, the groups submitted again.
    const { trainerEpoch } = restored;
    await fixture.open(job, { groupsPerStep: 90, remainingGroups: 0, policy: POLICY, trainerEpoch });
    const again: Claim[] = [];
    while (!again.some(({ requestId }) => requestId === 'job/g7/1')) again.push(...(await worker.claim(128)));
    const seventh = again.find(({ requestId }) => requestId === 'job/g7/1')!;
    expect(seventh).toMatchObject({ roundId: 'round-2', segments: [{ tokenCount: 4 }] });
    expect(attemptNumber(seventh.attempt)).toBe(2);
    for (const claim of again) await worker.complete(claim);
    await worker.finishAll();
    await fixture.close({ job, roundId: 'round-2', trainerEpoch });
    await fixture.swept();
    await step(groups(3, 100), 3, trainerEpoch);
    expect(await counts()).toMatchObject({ submitted: 198, trained: 198 });
  });

  it('keeps the last two snapshots, and deletes payloads that only an older one refers to', async () => {
    const epoch = await step(groups(3), 1);
    await save(epoch, 'a');
    const refs = [await fixture.promptRef(job, 'g1'), stored.get('job/g1/0')!, stored.get('job/g2/1')!];
    await longStep(2, epoch);
    await save(epoch, 'b');
    expect(await Promise.all(refs.map(exists))).toEqual([true, true, true]);
    setFailpoints('coordinator.unlink.between-pages=throw@1');
    await step(groups(2, 10), 1, epoch);
    await save(epoch, 'c');
    expect(await listed()).toEqual(['b', 'c']);
    await waitUntil(async () => (await Promise.all(refs.map(exists))).every((there) => !there), {
      what: 'the payloads of the oldest snapshot to be deleted',
      timeoutMs: 10_000,
    });
    expect(await fixture.redis.keys(`${fixture.rootKey}:snapshot*/1`)).toEqual([]);
    await expect(restore('a', epoch)).rejects.toMatchObject({
      code: 'SNAPSHOT_NOT_FOUND',
      field: 'tag',
      message: expect.stringContaining('there are b, c') as string,
    });
    // After a fallback to b, c is a snapshot of an undone time.
    await restore('b');
    expect(await listed()).toEqual(['b']);
  });

  it('keeps as many snapshots as the trainer asks for', async () => {
    const epoch = await step(groups(6), 1);
    const saveSnapshot = (tag: string, keep: number) => {
      const body = { job, trainerEpoch: epoch, tag, keep };
      return fixture.client.callWithRetry(fixture.pool, 'job.snapshot', body, { deadlineMs: 10_000 });
    };
    for (const tag of ['a', 'b', 'c']) {
      expect((await saveSnapshot(tag, 3)).state).toBe('complete');
      await longStep(1, epoch);
    }
    expect(await listed()).toEqual(['a', 'b', 'c']);
    await expect(saveSnapshot('d', 17)).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'keep' });
    expect((await saveSnapshot('d', 1)).state).toBe('complete');
    expect(await listed()).toEqual(['d']);
  });

  it('saves only between rounds, and a tag names one state', async () => {
    await expect(fixture.call('job.snapshots', { job })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    await expect(restore('a')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    const epoch = await step(groups(2), 1);
    await save(epoch, 'a');
    const opened = await fixture.open(job, {
      groupsPerStep: 1,
      remainingGroups: 5,
      policy: POLICY,
      trainerEpoch: epoch,
    });
    await expect(save(epoch, 'b')).rejects.toMatchObject({ code: 'ROUND_CONFLICT' });
    await expect(restore('a', epoch)).rejects.toMatchObject({ code: 'ROUND_CONFLICT' });
    const round = { job, roundId: opened.roundId, trainerEpoch: epoch };
    await fixture.call('round.cancel', { ...round, mode: 'requeue' });
    await fixture.swept();
    await fixture.call('longtail.drop', { job, trainerEpoch: epoch, all: true, reason: 'test' });
    await expect(save(epoch, 'a')).rejects.toMatchObject({ code: 'SNAPSHOT_EXISTS', field: 'tag' });
    await expect(save(epoch, 'a\nb')).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'tag' });
    await restore('a', epoch);
    expect(await queued()).toHaveLength(1);
  });

  it('recognizes a trained group, and takes the prompt of another pass over the data as a separate group', async () => {
    const first = groups(1).map((group) => ({ ...group, groupId: 'p0:1' }));
    const epoch = await step(first, 1);
    await expect(step(first, 1, epoch)).rejects.toMatchObject({
      code: 'DUPLICATE_GROUP',
      field: 'groupId',
      message: expect.stringContaining('step 1'),
    });
    await fixture.call('round.cancel', { job, roundId: 'round-2', trainerEpoch: epoch, mode: 'drop' });
    await fixture.swept();
    const wanted = { groupsPerStep: 1, remainingGroups: 1, policy: POLICY, trainerEpoch: epoch, roundId: 'again' };
    const { roundId } = await fixture.open(job, wanted);
    const second = first.map((group) => ({ ...group, groupId: 'p0:2' }));
    await fixture.call('round.submit', { job, roundId, trainerEpoch: epoch, groups: second });
    await worker.finishAll();
    await fixture.close({ job, roundId, trainerEpoch: epoch });
    expect(await fixture.call('job.status', { job })).toMatchObject({ trainedGroups: 2, stepsTrained: 2 });
  });

  it('takes groups of undone steps again, also groups that were aborted while they were gone', async () => {
    const epoch = await step(groups(1), 1);
    await save(epoch, 'a');
    await step(groups(3, 10), 3, epoch);
    await fixture.call('request.abort', { abortId: 'late', job, groupId: 'g10' });
    for (const scope of ['sample', 'group'] as const) {
      await fixture.call('request.abort', { abortId: `late-${scope}`, requestIds: ['job/g11/0'], scope });
    }
    await fixture.call('request.abort', { abortId: 'late-default', requestIds: ['job/g12/1', 'other/g1/0'] });
    const { trainerEpoch } = await restore('a', epoch);
    await step(groups(3, 10), 3, trainerEpoch);
    expect(await counts()).toMatchObject({ submitted: 8, trained: 8, dropped: 0 });
    // A tombstone of another job stays.
    const left = await fixture.redis.zrange(`${fixture.rootKey}:aborts:tombstones`, '0', '-1');
    expect(left).toEqual(['other/g1/0']);
  });
});
