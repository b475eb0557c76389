import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups, openRequest } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };
const job = 'job';

describe('the scope of an abort', () => {
  let fixture: CoordinatorFixture;
  let call: CoordinatorFixture['client']['call'];
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
    call = (pool, operation, body, options) => fixture.client.call(pool, operation, body, options);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  it('lets a round that needs two of four samples go on after an abort and a timeout', async () => {
    const wanted = { job, groupsPerStep: 1, remainingGroups: 1, policy: POLICY };
    const plan = await call(fixture.pool, 'round.next', wanted);
    const opening = openRequest(job, plan, POLICY, { abortScope: 'sample' });
    const { roundId, trainerEpoch } = await call(fixture.pool, 'round.open', opening);
    const round = { job, roundId, trainerEpoch };
    const [group] = groups(1, 0, 4);
    await call(fixture.pool, 'round.submit', { ...round, groups: [{ ...group!, minSamples: 2, timeoutMs: 60_000 }] });
    const worker = await fixture.worker('w');
    const claims = await worker.claim(4);
    expect(claims.map(({ timeoutMs }) => timeoutMs)).toEqual([60_000, 60_000, 60_000, 60_000]);
    const [first, second, third, fourth] = claims as [Claim, Claim, Claim, Claim];

    const aborting = call(fixture.pool, 'request.abort', {
      abortId: 'a',
      requestIds: [first.requestId],
      waitMs: 20_000,
    });
    const confirmed = { ...worker.fence(first), reason: 'aborted', retryable: true } as const;
    await expect.poll(async () => (await call(fixture.pool, 'job.status', { job })).requests.cutting).toBe(1);
    await call(fixture.pool, 'request.fail', confirmed);
    expect((await aborting).results).toMatchObject([{ requestId: first.requestId, outcome: 'aborted' }]);
    const late = { ...worker.fence(second), reason: 'timeout', retryable: false } as const;
    const segment = fixture.segmentOf(second, 9);
    expect(await call(fixture.pool, 'request.fail', { ...late, segment })).toMatchObject({ state: 'dropped' });
    await worker.complete(third);
    await worker.complete(fourth);
    expect(await call(fixture.pool, 'round.status', { job })).toMatchObject({
      state: 'completed',
      acceptedGroups: 1,
      droppedGroups: 0,
      wastedByReason: { timeout: 9 },
      returnedAttempts: { timeout: 1 },
    });
    const { groups: accepted } = await call(fixture.pool, 'round.results', round);
    expect(accepted[0]!.samples.map(({ sampleIndex }) => sampleIndex)).toEqual([2, 3]);
  });

  it('is refused where whole groups are meant, and where more samples are needed than there are', async () => {
    const body = { abortId: 'b', groupId: 'g0', job, scope: 'sample' } as const;
    await expect(call(fixture.pool, 'request.abort', body)).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      field: 'scope',
    });
    const { round } = await fixture.openRound(POLICY, 1);
    const [group] = groups(1, 0, 2);
    const submitted = call(fixture.pool, 'round.submit', { ...round, groups: [{ ...group!, minSamples: 3 }] });
    await expect(submitted).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'groups.0.minSamples' });
  });
});
