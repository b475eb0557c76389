import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups, openRequest } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };
const job = 'job';

describe('the scope of an abort', () => {
  let fixture: CoordinatorFixture;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  it('continues a round that needs two of four samples after an abort and a timeout', async () => {
    const wanted = { job, groupsPerStep: 1, remainingGroups: 1, policy: POLICY };
    const plan = await fixture.call('round.next', wanted);
    const opening = openRequest(job, plan, POLICY, { abortScope: 'sample' });
    const { roundId, trainerEpoch } = await fixture.call('round.open', opening);
    const round = { job, roundId, trainerEpoch };
    const [group] = groups(1, 0, 4);
    await fixture.call('round.submit', { ...round, groups: [{ ...group!, minSamples: 2, timeoutMs: 60_000 }] });
    const worker = await fixture.worker('w');
    const claims = await worker.claim(4);
    expect(claims.map(({ timeoutMs }) => timeoutMs)).toEqual([60_000, 60_000, 60_000, 60_000]);
    const [first, second, third, fourth] = claims as [Claim, Claim, Claim, Claim];

    const aborting = fixture.call('request.abort', {
      abortId: 'a',
      requestIds: [first.requestId],
      waitMs: 20_000,
    });
    const confirmed = { ...worker.fence(first), reason: 'aborted', retryable: true } as const;
    await expect.poll(async () => (await fixture.call('job.status', { job })).requests.cutting).toBe(1);
    await fixture.call('request.fail', confirmed);
    expect((await aborting).results).toMatchObject([{ requestId: first.requestId, outcome: 'aborted' }]);
    const late = { ...worker.fence(second), reason: 'timeout', retryable: false } as const;
    const segment = fixture.buildSegment(second, 9);
    expect(await fixture.call('request.fail', { ...late, segment })).toMatchObject({ state: 'dropped' });
    await worker.complete(third);
    await worker.complete(fourth);
    expect(await fixture.call('round.status', { job })).toMatchObject({
      state: 'completed',
      acceptedGroups: 1,
      droppedGroups: 0,
      wastedByReason: { timeout: 9 },
      returnedAttempts: { timeout: 1 },
    });
    const { groups: accepted } = await fixture.call('round.results', round);
    expect(accepted[0]!.samples.map(({ sampleIndex }) => sampleIndex)).toEqual([2, 3]);
  });

  it('is refused for a selector of whole groups, and a group may not need more samples than it has', async () => {
    const body = { abortId: 'b', groupId: 'g0', job, scope: 'sample' } as const;
    await expect(fixture.call('request.abort', body)).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      field: 'scope',
    });
    const { round } = await fixture.openRound(POLICY, 1);
    const [group] = groups(1, 0, 2);
    const submitted = fixture.call('round.submit', { ...round, groups: [{ ...group!, minSamples: 3 }] });
    await expect(submitted).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'groups.0.minSamples' });
  });
});
