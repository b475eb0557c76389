import type { RequestStatus } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups, openRequest } from '../coordinator.fixture';

describe('request.list', () => {
  let fixture: CoordinatorFixture;
  const call: CoordinatorFixture['client']['call'] = (...args) => fixture.client.call(...args);
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());

  it('lists the requests that have not ended, with worker, server and age', async () => {
    fixture.freshPool();
    const { pool } = fixture;
    const worker = await fixture.worker('w');
    const { roundId, trainerEpoch } = await fixture.open('job', {
      groupsPerStep: 2,
      remainingGroups: 2,
      policy: { name: 'resume', overProvision: 1 },
    });
    await call(pool, 'round.submit', { job: 'job', roundId, trainerEpoch, groups: groups(2) });
    const [done, running, claimed] = await worker.claim(3);
    await worker.complete(done!);
    const segment = fixture.buildSegment(running!, 7);
    await call(pool, 'request.save', { ...worker.fence(running!), serverId: 's1', waiting: true, segment });

    const { attempt } = running!;
    const { maxTokens } = running!;
    const held = { attempt, failures: 0, maxTokens, workerId: 'w', workerEpoch: worker.workerEpoch };
    const ageMs = expect.any(Number) as number;
    const started = { serverId: 's1', waiting: true as const, tokensAgeMs: ageMs };
    const expected: Partial<RequestStatus>[] = [
      { requestId: running!.requestId, state: 'running', tokenCount: 7, ageMs, ...started, ...held },
      { requestId: claimed!.requestId, state: 'claimed', tokenCount: 0, ageMs, ...held },
      { requestId: 'job/g1/1', state: 'pending', tokenCount: 0, maxTokens, attempt: '0', failures: 0 },
    ];
    expect(await call(pool, 'request.list', { job: 'job' })).toEqual({ requests: expected });
    const ofWorker = await call(pool, 'request.list', { workerId: 'w', minAgeMs: 0 });
    expect(ofWorker.requests).toEqual(expect.arrayContaining(expected.slice(0, 2)));
    expect(ofWorker.requests).toHaveLength(2);
    expect(await call(pool, 'request.list', { job: 'job', minAgeMs: 600_000 })).toEqual({ requests: [] });
  });

  it('has the mean speed of an attempt from its start to its last save', async () => {
    fixture.freshPool();
    const { pool } = fixture;
    const worker = await fixture.worker('w');
    const { roundId, trainerEpoch } = await fixture.open('job', {
      groupsPerStep: 1,
      remainingGroups: 1,
      policy: { name: 'resume', overProvision: 1 },
    });
    await call(pool, 'round.submit', { job: 'job', roundId, trainerEpoch, groups: groups(1) });
    const [claim] = await worker.claim(1);
    const fence = { ...worker.fence(claim!), serverId: 's1' };
    const read = async () => (await call(pool, 'request.list', { job: 'job', state: 'running' })).requests[0]!;
    await call(pool, 'request.save', fence);
    const started = await read();
    expect(started).not.toHaveProperty('tokensPerSecond');
    expect(started).not.toHaveProperty('tokensAgeMs');
    // The save is in a later millisecond than the start.
    await expect.poll(async () => (await read()).ageMs).toBeGreaterThan(started.ageMs! + 1);
    await call(pool, 'request.save', { ...fence, segment: fixture.buildSegment(claim!, 100) });
    const { tokensPerSecond, tokensAgeMs, ageMs } = await read();
    // The start is not before the claim, and not after the first save.
    expect(tokensPerSecond).toBeGreaterThanOrEqual((100 / (ageMs! - tokensAgeMs! + 1)) * 1_000);
    expect(tokensPerSecond).toBeLessThanOrEqual(100_000);
  });

  it.each([undefined, 1, 2, 100])('pages through a round, in pages of at most %s requests', async (limit) => {
    fixture.freshPool();
    const { pool } = fixture;
    const policy = { name: 'wait', overProvision: 1 } as const;
    const plan = await call(pool, 'round.next', { job: 'job', groupsPerStep: 100, remainingGroups: 100, policy });
    const { roundId, trainerEpoch } = await call(pool, 'round.open', openRequest('job', plan, policy));
    await call(pool, 'round.submit', { job: 'job', roundId, trainerEpoch, groups: groups(100, 0, 3) });
    const seen: string[] = [];
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const page: { requests: RequestStatus[]; cursor?: string } = await call(pool, 'request.list', {
        job: 'job',
        cursor,
        limit,
      });
      expect(page.requests.length).toBeLessThanOrEqual(limit ?? 128);
      seen.push(...page.requests.map(({ requestId }) => requestId));
      ({ cursor } = page);
    }
    expect(seen).toHaveLength(300);
    expect(new Set(seen).size).toBe(300);
  });

  it('refuses a call without a selector or with two, and an unknown job or worker', async () => {
    fixture.freshPool();
    const refused = (body: object) => call(fixture.pool, 'request.list', body);
    await expect(refused({})).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'job' });
    await expect(refused({ job: 'j', workerId: 'w' })).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    await expect(refused({ job: 'j' })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    await expect(refused({ workerId: 'w' })).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' });
  });
});
