import { randomUUID } from 'node:crypto';
import type { GroupStatus, RequestOf, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, type FixtureWorker, groups, openRequest } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1, shortfall: 'accept-fewer', maxFailures: 1 };
const MESSAGE = `The engine answered 400: ${'ä'.repeat(400)}`;

describe('groups that end without training', () => {
  let fixture: CoordinatorFixture;
  let worker: FixtureWorker;
  const job = 'job';
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(async () => {
    fixture.freshPool();
    worker = await fixture.worker('w');
  });

  async function openRound(count: number, trainerEpoch?: string, extra: Partial<RequestOf<'round.open'>> = {}) {
    const plan = await fixture.call('round.next', {
      job,
      groupsPerStep: count,
      remainingGroups: count,
      policy: POLICY,
    });
    const opened = await fixture.call('round.open', openRequest(job, plan, POLICY, { trainerEpoch, ...extra }));
    return { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
  }
  const list = async (roundId?: string): Promise<GroupStatus[]> =>
    (await fixture.call('group.list', { job, roundId, set: 'lost' })).groups;

  it('are listed with the reason, the sample and the prompt of each', async () => {
    const round = await openRound(4);
    await fixture.call('round.submit', { ...round, groups: groups(4, 0, 1) });
    const claims = await worker.claim(16);
    const failed = claims.find(({ groupId }) => groupId === 'g0')!;
    const failure = { reason: 'engine-rejected', retryable: false, message: MESSAGE } as const;
    await fixture.call('request.fail', { ...worker.fence(failed), ...failure });
    const aborted = claims.find(({ groupId }) => groupId === 'g1')!;
    await fixture.call('request.abort', { abortId: randomUUID(), requestIds: [aborted.requestId], reason: 'no use' });
    await fixture.call('request.fail', { ...worker.fence(aborted), reason: 'aborted', retryable: true });
    for (const claim of claims.filter(({ groupId }) => groupId > 'g1')) await worker.complete(claim);
    await expect.poll(async () => (await fixture.call('round.status', round)).state).toBe('completed');

    const lost = await list(round.roundId);
    expect(lost).toMatchObject([
      { groupId: 'g0', state: 'failed', reason: 'engine-rejected', requestId: 'job/g0/0', promptRef: failed.promptRef },
      { groupId: 'g1', state: 'dropped', reason: 'no use', requestId: 'job/g1/0', promptRef: aborted.promptRef },
    ]);
    expect(MESSAGE.startsWith(lost[0]!.message!)).toBe(true);
    expect(lost[0]!.message!.length).toBeGreaterThan(100);
    await expect
      .poll(() => fixture.metric('broomwagon_lost_groups_total', `outcome="failed",reason="engine-rejected"`))
      .toBe(1);
    expect(await fixture.metric('broomwagon_lost_groups_total', `outcome="dropped",reason="other"`)).toBe(1);
    // Trained and listed groups are the submitted ones.
    expect(await fixture.close(round)).toMatchObject({ trainedGroups: 2 });
    await fixture.swept();
    expect(await list(round.roundId)).toEqual([]);
  });

  it('are listed by the next round if no round was open, or if theirs was cancelled', async () => {
    const first = await openRound(3);
    await fixture.call('round.submit', { ...first, groups: groups(3, 0, 1) });
    const claims = await worker.claim(16);
    const failed = claims.find(({ groupId }) => groupId === 'g0')!;
    await fixture.call('request.fail', { ...worker.fence(failed), reason: 'engine-rejected', retryable: false });
    await fixture.call('round.cancel', { ...first, mode: 'requeue' });
    for (const claim of claims.filter((each) => each !== failed)) {
      await fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true });
    }
    await fixture.swept();
    const { trainerEpoch } = first;
    const dropped = await fixture.call('longtail.drop', { job, trainerEpoch, groupIds: ['g1'], reason: 'too easy' });
    expect(dropped.dropped).toEqual(['g1']);
    const both = [
      { groupId: 'g0', state: 'failed', reason: 'engine-rejected' },
      { groupId: 'g1', state: 'dropped', reason: 'too easy' },
    ];
    expect(await list()).toMatchObject(both);

    const second = await openRound(1, trainerEpoch, { roundId: 'second' });
    expect(await list(second.roundId)).toMatchObject(both);
    await worker.finishAll();
    expect(await fixture.close(second)).toMatchObject({ trainedGroups: 1 });
    await fixture.swept();
    expect(await list()).toEqual([]);
  });
});
