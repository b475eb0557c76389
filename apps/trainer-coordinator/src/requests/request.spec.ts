import { type Claim, type RequestSegmentsReply, type TailPolicy } from '@broomwagon/contracts';
import { waitUntil } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups, openRequest } from '../coordinator.fixture';

const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };
const within = (what: string) => ({ what, timeoutMs: 20_000 });

describe('claims and the ends of attempts', () => {
  let fixture: CoordinatorFixture;

  beforeAll(async () => {
    fixture = await CoordinatorFixture.start();
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  const openRound = (policy: TailPolicy, needed: number, remaining?: number) =>
    fixture.openRound(policy, needed, remaining);

  it('gives a waiting claim its requests as soon as they are submitted, and an empty answer at its deadline', async () => {
    const worker = await fixture.worker('waiting');
    const startedAtMs = Date.now();
    expect(await worker.claim(2, 150)).toEqual([]);
    expect(Date.now() - startedAtMs).toBeGreaterThanOrEqual(145);
    const { round } = await openRound(WAIT, 1);
    const waiting = worker.claim(2, 20_000);
    await waitUntil(async () => (await fixture.waitingClaims()) === 1, within('the claim to be parked'));
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    const claims = await waiting;
    expect(claims.map((claim) => claim.sampleIndex)).toEqual([0, 1]);
    for (const claim of claims) await worker.complete(claim);
  });

  it('answers a repeated claim with the same requests, and grants none of them twice', async () => {
    const { round } = await openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    const { workerId, workerEpoch } = await fixture.worker('repeats');
    const claim = { claimId: 'same', workerId, workerEpoch, max: 1 };
    const first = await fixture.call('request.claim', claim);
    expect(first.claims).toHaveLength(1);
    expect(await fixture.call('request.claim', claim)).toEqual(first);
    const other = await fixture.call('request.claim', { ...claim, claimId: 'other', max: 5 });
    expect(other.claims.map((each) => each.sampleIndex)).toEqual([1]);
  });

  it('gives the requests of a dead worker to another with the tokens of the last partial save', async () => {
    const { round } = await openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
    const dead = await fixture.worker('dies');
    const [claim] = (await dead.claim(1)) as [Claim];
    // The save of 4 tokens was sent before the save of 9, and overtaken.
    for (const tokens of [9, 4]) {
      const body = { ...dead.fence(claim), segment: fixture.buildSegment(claim, tokens) };
      expect(await fixture.call('request.save', body)).toEqual({ action: 'continue' });
    }
    const other = await fixture.worker('lives');
    const waiting = other.claim(1, 20_000);
    await fixture.workers.deregister(fixture.pool, dead.identity);
    const [again] = (await waiting) as [Claim];
    expect(again).toMatchObject({
      requestId: claim.requestId,
      attempt: expect.stringMatching(/^2-/) as string,
      segments: [fixture.buildSegment(claim, 9)],
    });
    await expect(dead.complete(claim)).rejects.toMatchObject({ code: 'FENCED' });
    const nobody = { ...dead.fence(claim), workerId: 'never-registered' };
    const segment = fixture.buildSegment(claim, 9);
    const { workerId, workerEpoch } = nobody;
    const { requestId, attempt } = claim;
    const job = requestId.split('/')[0]!;
    for (const say of [
      () => fixture.call('request.claim', { workerId, workerEpoch, claimId: 'c', max: 1 }),
      () => fixture.call('request.save', { ...nobody, segment }),
      () => fixture.call('request.complete', { ...nobody, segment, finishReason: 'stop' }),
      () => fixture.call('request.fail', { ...nobody, reason: 'engine-error', retryable: true }),
      () => fixture.call('longtail.requeue', { job, workerId, workerEpoch, requests: [{ requestId, attempt }] }),
    ]) {
      await expect(say()).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND', field: 'workerId' });
    }
    const born = await fixture.worker('dies');
    await expect(born.complete(claim)).rejects.toMatchObject({ code: 'FENCED' });
    await other.complete(again);
  });

  it('grants requests with very many segments, in answers that fit a message', async () => {
    const { round } = await openRound(WAIT, 32);
    await fixture.call('round.submit', { ...round, groups: groups(32, 0, 1) });
    const worker = await fixture.worker('many');
    const list = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        attempt: `${index + 1}-a`,
        serverId: 's'.repeat(64),
        serverEpoch: 'e1',
        weightVersion: 1,
        tokenCount: 1,
        ref: 'r'.repeat(512),
      }));
    // Segments of as many moves: 31 requests with 80 kB each, and one with 2 MB.
    const [long, short] = [list(3_000), list(120)];
    const ids = await fixture.redis.zrange(`${fixture.rootKey}:job-pending:${round.job}`, '0', '-1');
    expect(ids).toHaveLength(32);
    for (const [index, id] of ids.entries()) {
      await fixture.redis.hset(`${fixture.rootKey}:request:${id}`, {
        segments: JSON.stringify(index === 7 ? long : short),
        tokens: index === 7 ? '3000' : '120',
      });
    }
    const claims: Claim[] = [];
    while (claims.length < 32) {
      const page = await worker.claim(128);
      expect(page.length).toBeGreaterThan(0);
      claims.push(...page);
    }
    const readAll = async (requestId: string) => {
      const segments = [];
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        const page: RequestSegmentsReply = await fixture.call('request.segments', { requestId, cursor });
        segments.push(...page.segments);
        ({ cursor } = page);
      }
      return segments;
    };
    for (const claim of claims) {
      expect(claim.segmentsFollow === true).toBe(claim.requestId === ids[7]);
      const segments = claim.segmentsFollow ? await readAll(claim.requestId) : claim.segments;
      expect(segments).toEqual(claim.requestId === ids[7] ? long : short);
      await worker.complete(claim);
    }
    await expect(fixture.call('request.segments', { requestId: 'no/such/1' })).rejects.toMatchObject({
      code: 'REQUEST_NOT_FOUND',
    });
  });

  it('fails a group whose request cannot succeed, asks for a replacement and takes it', async () => {
    const { job, round } = await openRound({ ...WAIT, maxFailures: 1 }, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    const worker = await fixture.worker('fails');
    const fail = (claim: Claim, retryable: boolean) =>
      fixture.call('request.fail', { ...worker.fence(claim), reason: 'engine-error', retryable });
    const [claim, sibling] = (await worker.claim(2)) as [Claim, Claim];
    expect(await fail(claim, true)).toEqual({ state: 'pending' });
    const [again] = (await worker.claim(1)) as [Claim];
    expect(again).toMatchObject({ requestId: claim.requestId, attempt: expect.stringMatching(/^2-/) as string });
    expect(await fail(again, true)).toEqual({ state: 'failed' });
    expect(await worker.complete(sibling)).toMatchObject({ state: 'dropped' });
    expect(await fixture.call('round.status', { job })).toMatchObject({ failedGroups: 1, shortfallGroups: 1 });
    await fixture.call('round.submit', { ...round, groups: groups(1, 1) });
    await worker.finishAll();
    expect(await fixture.call('round.status', { job })).toMatchObject({ state: 'completed', shortfallGroups: 0 });
    await fixture.close(round);
    await fixture.swept();
    expect(await fixture.call('job.status', { job })).toMatchObject({
      failedGroups: 1,
      trainedGroups: 1,
      requests: { submitted: 4, trained: 2, failed: 1, dropped: 1 },
    });
  });

  it('stops the claims of a job whose trainer is silent, until the trainer calls again', async () => {
    const job = fixture.newJob();
    const plan = await fixture.call('round.next', { job, groupsPerStep: 1, remainingGroups: 1, policy: WAIT });
    const request = openRequest(job, plan, WAIT, { orphanAfterMs: 30_000 });
    const { roundId, trainerEpoch } = await fixture.call('round.open', request);
    await fixture.call('round.submit', { job, roundId, trainerEpoch, groups: groups(1, 0, 1) });
    await fixture.redis.hincrby(`${fixture.rootKey}:job:${job}`, 'trainerSeenAtMs', -31_000);
    const worker = await fixture.worker('orphan');
    expect(await worker.claim(1)).toEqual([]);
    const waiting = worker.claim(1, 20_000);
    await fixture.call('round.status', { job, trainerEpoch });
    expect(await waiting).toHaveLength(1);
  });
});
