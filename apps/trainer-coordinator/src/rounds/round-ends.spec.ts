import type { Claim, Epoch, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, type FixtureWorker, groups, openRequest } from '../coordinator.fixture';

const RESUME: TailPolicy = { name: 'resume', overProvision: 1 };
const job = 'job';

describe('a round that cannot have all its groups', () => {
  let fixture: CoordinatorFixture;
  let worker: FixtureWorker;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(async () => {
    fixture.freshPool();
    worker = await fixture.worker('w');
  });

  const next = (groupsPerStep: number, remainingGroups: number) =>
    fixture.call('round.next', { job, groupsPerStep, remainingGroups, policy: RESUME });
  async function open(policy: TailPolicy, needed: number, count: number, trainerEpoch?: Epoch) {
    const wanted = { groupsPerStep: needed, remainingGroups: count, policy, trainerEpoch };
    const opened = await fixture.open(job, wanted);
    const round = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    if (count > 0) await fixture.call('round.submit', { ...round, groups: groups(count, 0, 1) });
    return round;
  }
  const refuse = (claim: Claim) =>
    fixture.call('request.fail', { ...worker.fence(claim), reason: 'engine-rejected', retryable: false });
  const status = () => fixture.call('round.status', { job });

  it('closes empty, as a step of its own, when every group of a round that accepts fewer has failed', async () => {
    const round = await open({ ...RESUME, shortfall: 'accept-fewer' }, 2, 2);
    for (const claim of await worker.claim(2)) await refuse(claim);
    expect(await status()).toMatchObject({ state: 'completed', completedReason: 'accepted-fewer', acceptedGroups: 0 });
    expect(await fixture.call('round.results', round)).toMatchObject({
      state: 'completed',
      groups: [],
      complete: true,
    });
    expect(await fixture.close(round)).toMatchObject({ stepsTrained: 1, trainedGroups: 0 });
    expect(await next(2, 0)).toMatchObject({ kind: 'done', step: 2 });
  });

  it('is over at its deadline with every request cut, and the next step takes them all', async () => {
    const round = await open({ ...RESUME, deadlineMs: 60_000 }, 3, 3);
    const [mine] = (await worker.claim(1)) as [Claim];
    await fixture.deadlineComes(round);
    await expect.poll(async () => (await status()).state).toBe('completed');
    await fixture.call('request.fail', { ...worker.fence(mine), reason: 'aborted', retryable: true });
    await expect.poll(status).toMatchObject({ acceptedGroups: 0, groupsRequeued: 3, settled: true });
    expect(await fixture.close(round)).toMatchObject({ stepsTrained: 1, trainedGroups: 0 });
    await fixture.swept();
    expect(await next(3, 0)).toMatchObject({ kind: 'long', step: 2, neededGroups: 3, takeGroups: 3 });
    const { trainerEpoch } = round;
    await open(RESUME, 3, 0, trainerEpoch);
    await worker.finishAll();
    expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 3 });
  });

  it('trains the remaining groups in a last, partial step', async () => {
    let trainerEpoch: Epoch | undefined;
    for (const [from, needed] of [
      [0, 2],
      [2, 1],
    ] as const) {
      const plan = await next(2, 3 - from);
      expect(plan).toMatchObject({ step: from / 2 + 1, neededGroups: needed, newGroups: needed });
      const opened = await fixture.call('round.open', openRequest(job, plan, RESUME, { trainerEpoch }));
      ({ trainerEpoch } = opened);
      const round = { job, roundId: opened.roundId, trainerEpoch };
      await fixture.call('round.submit', { ...round, groups: groups(needed, from, 1) });
      await worker.finishAll();
      await fixture.close(round);
    }
    expect(await next(2, 0)).toMatchObject({ kind: 'done', step: 3 });
  });

  it('is given up by the trainer that took over, while the previous trainer is fenced', async () => {
    const round = await open(RESUME, 2, 2);
    const [mine] = (await worker.claim(1)) as [Claim];
    const taken = await fixture.call('round.takeover', { job, takeoverId: 'second' });
    expect(taken).toMatchObject({ stepsTrained: 0, submittedGroups: 2, round: { roundId: round.roundId } });
    const cancel = { job, roundId: round.roundId, mode: 'requeue' as const };
    const old = fixture.call('round.cancel', { ...cancel, trainerEpoch: round.trainerEpoch });
    await expect(old).rejects.toMatchObject({ code: 'FENCED' });
    await fixture.call('round.cancel', { ...cancel, trainerEpoch: taken.trainerEpoch });
    await worker.complete(mine);
    await fixture.swept();
    const plan = await next(2, 0);
    expect(plan).toMatchObject({ kind: 'long', step: 1, takeGroups: 2 });
    const again = openRequest(job, plan, RESUME, { trainerEpoch: taken.trainerEpoch, roundId: 'again' });
    await fixture.call('round.open', again);
    await worker.finishAll();
    expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 2 });
  });
});
