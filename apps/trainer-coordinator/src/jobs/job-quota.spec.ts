import type { Claim, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'wait', overProvision: 1 };

describe('job.configure', () => {
  let fixture: CoordinatorFixture;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  async function open(job: string, count: number) {
    const wanted = { groupsPerStep: count, remainingGroups: count, policy: POLICY };
    const { roundId, trainerEpoch } = await fixture.open(job, wanted);
    await fixture.call('round.submit', { job, roundId, trainerEpoch, groups: groups(count, 0, 1) });
  }

  it('holds a cap, gives the rest to other jobs, and grants a parked claim as soon as there is room', async () => {
    const quota = { weight: 1_000, maxInFlight: 2 };
    expect(await fixture.call('job.configure', { job: 'capped', quota })).toEqual({
      job: 'capped',
      version: 1,
      quota,
      inFlight: 0,
    });
    await open('capped', 5);
    await open('other', 3);
    const worker = await fixture.worker('w');
    const claims = await worker.claim(10);
    expect(claims.map(({ job }) => job).sort()).toEqual(['capped', 'capped', 'other', 'other', 'other']);
    const waiting = worker.claim(10, 20_000);
    await expect.poll(() => fixture.waitingClaims()).toBe(1);
    await worker.complete(claims.find(({ job }) => job === 'capped') as Claim);
    expect(await waiting).toHaveLength(1);
    expect(await fixture.call('job.configure', { job: 'capped' })).toMatchObject({ version: 1, quota, inFlight: 2 });
    const rest = worker.claim(10, 20_000);
    await expect.poll(() => fixture.waitingClaims()).toBe(1);
    await fixture.call('job.configure', { job: 'capped', quota: {} });
    expect(await rest).toHaveLength(2);
  });

  it('gives claims by the weights of the jobs', async () => {
    await fixture.call('job.configure', { job: 'heavy', quota: { weight: 3 } });
    await open('heavy', 100);
    await open('light', 100);
    const worker = await fixture.worker('w');
    const given: string[] = [];
    for (let turn = 0; turn < 20; turn++) given.push(...(await worker.claim(4)).map(({ job }) => job));
    expect(Math.abs(given.filter((job) => job === 'heavy').length - 60)).toBeLessThanOrEqual(4);
  });

  it.each([{ weight: 0 }, { weight: 1.5 }, { weight: 1_001 }, { maxInFlight: -1 }, { share: 0.5 }])(
    'refuses the quota %j',
    async (quota) => {
      const body = { job: 'job', quota: quota as { weight?: number } };
      await expect(fixture.call('job.configure', body)).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    },
  );
});
