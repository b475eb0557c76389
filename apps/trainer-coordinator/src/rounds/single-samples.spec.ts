import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, type FixtureWorker, groups, openRequest } from '../coordinator.fixture';

const POLICIES: TailPolicy[] = [
  { name: 'wait', overProvision: 1, deadlineMs: 600_000 },
  { name: 'regenerate', overProvision: 1.5 },
  { name: 'resume', overProvision: 1.5, dispatchOrder: 'probe-first' },
  { name: 'resume', overProvision: 1.5, maxCuts: 1 },
  { name: 'drip', overProvision: 1.5, dripReserved: true, dispatchOrder: 'longest-first' },
  { name: 'drip', overProvision: 1.5, dripMode: 'adaptive', overProvisionMode: 'adaptive' },
  { name: 'fixed-concurrency', overProvision: 1.5, concurrency: 8 },
];

describe('groups of one sample, as PPO has them', () => {
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

  const stop = (claim: Claim, tokenCount: number) => {
    const segment = fixture.buildSegment(claim, tokenCount);
    return fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true, segment });
  };

  it.each(POLICIES)('are cut, queued, continued and counted alone: $name', async (policy) => {
    const discards = policy.name === 'regenerate';
    const open = async (remaining: number, trainerEpoch?: string) => {
      const plan = await fixture.call('round.next', { job, groupsPerStep: 2, remainingGroups: remaining, policy });
      const opened = await fixture.call('round.open', openRequest(job, plan, policy, { trainerEpoch }));
      return { plan, round: { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch } };
    };
    const { plan, round: first } = await open(3);
    const launched = plan.newGroups;
    await fixture.call('round.submit', { ...first, groups: groups(launched, 0, 1) });
    const claims = await worker.claim(16);
    expect(claims).toHaveLength(launched);
    // The sample of the last group is slow.
    const slow = claims.find(({ groupId }) => groupId === `g${launched - 1}`)!;
    await fixture.call('request.save', { ...worker.fence(slow), segment: fixture.buildSegment(slow, 5) });
    for (const claim of claims) if (claim !== slow) await worker.complete(claim, 3);
    // Under wait only a deadline cuts.
    if (policy.name === 'wait') await fixture.deadlineComes(first);
    await expect.poll(async () => (await fixture.call('round.status', { job })).state).toBe('completed');
    await stop(slow, 6);
    await expect.poll(async () => (await fixture.call('round.status', { job })).settled).toBe(true);
    expect(await fixture.call('round.status', { job })).toMatchObject({ requestsCut: 1, groupsRequeued: 1 });
    const queue = await fixture.call('longtail.list', { job });
    expect(queue.groups).toMatchObject([
      { groupId: slow.groupId, cuts: 1, samples: 1, finishedSamples: 0, tokens: discards ? 0 : 6 },
    ]);
    const trainedFirst = policy.name === 'wait' ? 1 : 2;
    expect(await fixture.close(first)).toMatchObject({ trainedGroups: trainedFirst, trainedRequests: trainedFirst });
    await fixture.swept();

    const { plan: next, round: second } = await open(0, first.trainerEpoch);
    expect(next).toMatchObject({ kind: 'long', neededGroups: 1, takeGroups: 1, newGroups: 0 });
    const [again, ...others] = (await worker.claim(16)) as [Claim, ...Claim[]];
    expect(others).toEqual([]);
    expect(again.groupId).toBe(slow.groupId);
    expect(again.segments.map(({ tokenCount }) => tokenCount)).toEqual(discards ? [] : [6]);
    await worker.complete(again, 4);
    const { groups: read, ledger } = await fixture.call('round.results', second);
    expect(read).toMatchObject([{ samples: [{ tokenCount: discards ? 4 : 10 }] }]);
    expect(ledger).toMatchObject({
      trained: { samples: 1, meanTokens: discards ? 4 : 10 },
      offPolicyShare: discards ? 0 : 0.6,
      cutsPerGroup: { mean: 1, max: 1 },
    });
    expect(await fixture.close(second)).toMatchObject({ trainedGroups: 1, trainedRequests: 1 });
    await fixture.swept();
    const { summary } = await fixture.call('job.ledger', { job });
    // Each step counts once, however many samples it has.
    const [short, long] = [3, discards ? 4 : 10];
    expect(summary.batchVariation).toBeCloseTo(Math.abs(long - short) / (long + short), 9);
    expect(summary.trained.samples).toBe(trainedFirst + 1);
    expect(await fixture.call('job.status', { job })).toMatchObject({
      trainedGroups: trainedFirst + 1,
      longtail: { groups: 0, settlingGroups: 0 },
      requests: { trained: trainedFirst + 1, unfinished: 0, finished: 0 },
    });
  });
});
