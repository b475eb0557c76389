import {
  type BroomwagonError,
  type AbortAttemptsCommand,
  type Claim,
  type DropLongtailReply,
  type DropLongtailRequest,
  eventSubject,
  type TailPolicy,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { attemptNumber } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../../../../libs/platform/src/failpoint';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };

describe('groups that are given up', () => {
  let fixture: CoordinatorFixture;
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start();
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());
  afterEach(() => setFailpoints(''));

  const job = 'job';
  /** Opens a round that needs `needed` groups of two samples and has `count`, and a worker that receives its aborts. */
  async function opened(needed: number, policy: TailPolicy = POLICY, count = needed) {
    const { roundId, trainerEpoch } = await fixture.open(job, {
      groupsPerStep: needed,
      remainingGroups: count,
      policy,
    });
    const round = { job, roundId, trainerEpoch };
    await fixture.call('round.submit', { ...round, groups: groups(count) });
    const worker = await fixture.worker('w');
    const aborts: AbortAttemptsCommand[] = [];
    fixture.client.messaging.subscribe(workerCommandSubject(fixture.pool, 'w', 'abort'), (body) => {
      aborts.push(body as unknown as AbortAttemptsCommand);
    });
    const requeue = (claims: Claim[], tokens = 4) =>
      fixture.call('longtail.requeue', {
        job,
        workerId: worker.workerId,
        workerEpoch: worker.workerEpoch,
        requests: claims.map((claim) => ({
          requestId: claim.requestId,
          attempt: claim.attempt,
          segment: fixture.buildSegment(claim, tokens),
        })),
      });
    return { round, trainerEpoch, worker, aborts, requeue };
  }
  const status = () => fixture.call('round.status', { job });
  const queue = () => fixture.call('longtail.list', { job });
  const counts = async () => (await fixture.call('job.status', { job })).requests;

  describe('longtail.requeue', () => {
    it('puts the group into the long-tail queue with all its tokens, and the round asks for another group', async () => {
      const { round, worker, aborts, requeue } = await opened(1);
      const [mine, sibling] = (await worker.claim(2)) as [Claim, Claim];
      await fixture.call('request.save', {
        ...worker.fence(sibling),
        segment: fixture.buildSegment(sibling, 5),
      });
      const handedIn = { results: [{ requestId: mine.requestId, state: 'unfinished' }] };
      expect(await requeue([mine])).toEqual(handedIn);
      expect(await requeue([mine])).toEqual(handedIn);
      expect(await status()).toMatchObject({ state: 'open', shortfallGroups: 1, settled: false });
      expect((await fixture.call('longtail.stats', { job })).settlingGroups).toBe(1);
      // The command is repeated until the holder of the sibling confirms.
      await expect.poll(() => aborts.length).toBeGreaterThan(1);
      expect(aborts[0]).toMatchObject({
        cause: 'cut',
        attempts: [{ requestId: sibling.requestId, attempt: sibling.attempt }],
      });
      expect(await requeue([sibling], 7)).toMatchObject({ results: [{ state: 'unfinished' }] });
      const queued = { groupId: 'g0', cuts: 1, firstStep: 1, finishedSamples: 0, samples: 2, tokens: 11 };
      expect(await queue()).toEqual({ groups: [queued] });
      expect(await status()).toMatchObject({ requestsCut: 2, groupsRequeued: 1, wastedTokens: 0 });

      await fixture.call('round.submit', { ...round, groups: groups(1, 1) });
      await worker.finishAll();
      await fixture.close(round);
      const { trainerEpoch } = round;
      await fixture.open(job, { groupsPerStep: 1, remainingGroups: 0, policy: POLICY, trainerEpoch });
      const again = await worker.claim(2);
      expect(
        again.map(({ attempt, segments }) => [attemptNumber(attempt), segments.map(({ tokenCount }) => tokenCount)]),
      ).toEqual([
        [2, [4]],
        [2, [7]],
      ]);
      for (const claim of again) await worker.complete(claim);
      expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 1 });
    });

    it('takes a group out of its round for an operator, who sends an attempt and no worker', async () => {
      const { worker, aborts } = await opened(1);
      const [one, other] = (await worker.claim(2)) as [Claim, Claim];
      const requeue = (fields: object, more = {}) => {
        const { requestId, attempt } = one;
        return fixture.call('longtail.requeue', { job, requests: [{ requestId, attempt, ...fields }], ...more });
      };
      const stale = { error: { code: 'FENCED', field: 'attempt' } };
      expect(await requeue({ attempt: '9-a' })).toMatchObject({ results: [stale] });
      const wrong = { code: 'VALIDATION_FAILED', field: 'workerEpoch' };
      await expect(requeue({}, { workerId: 'w' })).rejects.toMatchObject(wrong);
      const segment = fixture.buildSegment(one, 4);
      await expect(requeue({ segment })).rejects.toMatchObject({ field: 'requests.0.segment' });
      expect(await status()).toMatchObject({ shortfallGroups: 0 });

      const result = { results: [{ requestId: one.requestId, state: 'cutting' }] };
      expect(await requeue({})).toEqual(result);
      expect(await requeue({})).toEqual(result);
      expect(await status()).toMatchObject({ state: 'open', shortfallGroups: 1, settled: false });
      const stopped = () => new Set(aborts.flatMap(({ attempts }) => attempts.map(({ requestId }) => requestId)));
      await expect.poll(stopped).toEqual(new Set([one.requestId, other.requestId]));
      expect((await queue()).groups).toEqual([]);
      const confirm = (claim: Claim, tokens: number) => {
        const reason = { reason: 'aborted' as const, retryable: true };
        return fixture.call('request.fail', {
          ...worker.fence(claim),
          ...reason,
          segment: fixture.buildSegment(claim, tokens),
        });
      };
      await confirm(one, 4);
      // A sample that finishes before its worker stops it is kept.
      await worker.complete(other, 7);
      expect((await queue()).groups).toMatchObject([{ groupId: 'g0', finishedSamples: 1, tokens: 11 }]);
      expect(await requeue({})).toMatchObject({ results: [{ state: 'unfinished' }] });
      expect(await counts()).toMatchObject({ unfinished: 1, finished: 1, cutting: 0 });
    });

    it('lets a sibling that finishes first win, and a round that accepts fewer complete', async () => {
      const { worker, requeue } = await opened(1, { ...POLICY, shortfall: 'accept-fewer' });
      const [mine, sibling] = (await worker.claim(2)) as [Claim, Claim];
      await requeue([mine]);
      expect(await status()).toMatchObject({ state: 'completed', completedReason: 'accepted-fewer', settled: true });
      expect(await worker.complete(sibling, 9)).toMatchObject({ state: 'finished', groupAccepted: false });
      expect((await queue()).groups).toMatchObject([{ finishedSamples: 1, tokens: 13 }]);
    });

    it('reports a result for each sample, and refuses an expired worker as a whole', async () => {
      const { worker, requeue } = await opened(1);
      const [first, second] = (await worker.claim(2)) as [Claim, Claim];
      await worker.complete(first);
      const unknown = { ...second, requestId: 'job/nobody/0' };
      expect(await requeue([first, unknown, second])).toMatchObject({
        results: [
          { requestId: first.requestId, error: { code: 'FENCED', field: 'attempt' } },
          { requestId: unknown.requestId, error: { code: 'REQUEST_NOT_FOUND' } },
          { requestId: second.requestId, state: 'unfinished' },
        ],
      });
      await expect(requeue([{ ...second, requestId: 'other/g/0' }])).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        field: 'requests.0.requestId',
      });
      await fixture.worker('w');
      await expect(requeue([second])).rejects.toMatchObject({ code: 'FENCED', field: 'workerEpoch' });
    });

    it('gives back samples of a dead worker whose group was requeued', async () => {
      const { worker, requeue } = await opened(1);
      const [mine, sibling] = (await worker.claim(2)) as [Claim, Claim];
      await fixture.call('request.save', {
        ...worker.fence(sibling),
        segment: fixture.buildSegment(sibling, 5),
      });
      await requeue([mine]);
      await fixture.workers.deregister(fixture.pool, worker.identity);
      await expect.poll(async () => (await queue()).groups).toMatchObject([{ tokens: 9 }]);
      expect(await counts()).toMatchObject({ unfinished: 2, pending: 0, cutting: 0 });
    });
  });

  describe('longtail.drop', () => {
    /** Makes a queue of `count` groups with one finished sample each, left by a round without accepted groups. */
    async function createQueue(count: number) {
      const { round, trainerEpoch, worker } = await opened(count);
      const claims = await worker.claim(128);
      for (const claim of claims) if (claim.sampleIndex === 0) await worker.complete(claim);
      await fixture.call('round.cancel', { ...round, mode: 'requeue' });
      for (const claim of claims) {
        if (claim.sampleIndex === 0) continue;
        await fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true });
      }
      await fixture.swept();
      return { job, trainerEpoch, reason: 'zero-variance' };
    }

    it('drops the named groups with their payloads, and lists groups that were not in the queue', async () => {
      const args = await createQueue(3);
      const [kept, freed] = [await fixture.promptRef('job', 'g0'), await fixture.promptRef('job', 'g1')];
      const dropped = await fixture.call('longtail.drop', { ...args, groupIds: ['g1', 'nobody', 'g1'] });
      expect(dropped).toMatchObject({ dropped: ['g1'], notQueued: ['nobody'], requests: 2, tokens: 3 });
      expect(await fixture.call('longtail.drop', { ...args, groupIds: ['g1'] })).toMatchObject({
        dropped: [],
        notQueued: ['g1'],
        requests: 0,
        tokens: 0,
      });
      expect((await queue()).groups.map(({ groupId }) => groupId)).toEqual(['g0', 'g2']);
      expect(await counts()).toMatchObject({ submitted: 6, dropped: 2, finished: 2, unfinished: 2 });
      await expect.poll(() => fixture.redis.keys(`${fixture.rootKey}:*:job/g1*`)).toEqual([]);
      const code = (ref: string) =>
        fixture.call('payload.stat', { ref }).then(
          () => 'there',
          (error: BroomwagonError) => error.code,
        );
      await expect.poll(() => code(freed)).toBe('PAYLOAD_NOT_FOUND');
      expect(await code(kept)).toBe('there');
    });

    it('drops all groups that were in the queue, in pages', async () => {
      const args = await createQueue(80);
      const pages: number[] = [];
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        const body: DropLongtailRequest = { ...args, all: true, ...(cursor > 0 && { cursor }) };
        const page: DropLongtailReply = await fixture.call('longtail.drop', body);
        pages.push(page.requests);
        ({ cursor } = page);
      }
      expect(pages).toEqual([32, 32, 32, 32, 32]);
      expect(await fixture.call('job.status', { job })).toMatchObject({
        droppedGroups: 80,
        longtail: { groups: 0, settlingGroups: 0 },
        requests: { dropped: 160 },
      });
      const wanted = { job, groupsPerStep: 1, remainingGroups: 0, policy: POLICY };
      expect(await fixture.call('round.next', wanted)).toMatchObject({ kind: 'done', step: 1 });
    });

    it('refuses no selector, two selectors, and a trainer that was replaced', async () => {
      const args = await createQueue(1);
      const refused = (body: object, error: object) =>
        expect(fixture.call('longtail.drop', { ...args, ...body })).rejects.toMatchObject(error);
      await refused({}, { code: 'VALIDATION_FAILED', field: 'groupIds' });
      await refused({ all: true, groupIds: ['g0'] }, { code: 'VALIDATION_FAILED', field: 'groupIds' });
      await refused({ all: true, trainerEpoch: 'e9' }, { code: 'FENCED' });
      expect((await queue()).groups).toHaveLength(1);
    });
  });

  describe('round.cancel', () => {
    it('requeues everything with its tokens, also accepted groups, and counts no step', async () => {
      const { round, trainerEpoch, worker, aborts } = await opened(3);
      const claims = await worker.claim(6);
      const held = claims.filter(({ groupId }) => groupId === 'g2');
      for (const claim of claims) if (claim.groupId !== 'g2') await worker.complete(claim);
      expect(await status()).toMatchObject({ acceptedGroups: 2 });
      const body = { ...round, mode: 'requeue' as const };
      setFailpoints('coordinator.give-back.between-pages=throw@1');
      const answer = { roundId: round.roundId, state: 'cancelled', mode: 'requeue', groups: 3 };
      expect(await fixture.call('round.cancel', body)).toMatchObject(answer);
      expect(await fixture.call('round.cancel', body)).toMatchObject(answer);
      const cancelled = { code: 'ROUND_CANCELLED' };
      await expect(fixture.call('round.results', round)).rejects.toMatchObject(cancelled);
      const proof = { ...round, cursor: 'a.0.0.a.' };
      await expect(fixture.call('round.close', proof)).rejects.toMatchObject(cancelled);
      await expect(fixture.call('round.cancel', { ...body, mode: 'drop' })).rejects.toMatchObject({
        code: 'ROUND_CONFLICT',
        field: 'mode',
      });
      await expect(fixture.call('round.submit', { ...round, groups: groups(1, 9) })).rejects.toMatchObject({
        code: 'ROUND_NOT_OPEN',
      });
      await expect.poll(() => aborts.length).toBeGreaterThan(0);
      // One sample finishes after all, the other is confirmed.
      expect(await worker.complete(held[0]!, 6)).toMatchObject({ state: 'finished' });
      const confirmation = { ...worker.fence(held[1]!), reason: 'aborted' as const, retryable: true };
      await fixture.call('request.fail', { ...confirmation, segment: fixture.buildSegment(held[1]!, 2) });
      await fixture.swept();
      expect(await status()).toMatchObject({ state: 'cancelled', settled: true, groupsRequeued: 3, wastedTokens: 0 });
      expect((await queue()).groups.map(({ finishedSamples, tokens }) => [finishedSamples, tokens])).toEqual([
        [2, 6],
        [2, 6],
        [1, 8],
      ]);
      const plan = await fixture.call('round.next', {
        job,
        groupsPerStep: 3,
        remainingGroups: 0,
        policy: POLICY,
      });
      expect(plan).toMatchObject({ step: 1, kind: 'long', takeGroups: 3 });
      const { kind, ...rest } = plan;
      const open = { job, kind: kind as 'long', ...rest, policy: POLICY, weightVersion: 1, trainerEpoch };
      await expect(fixture.call('round.open', { ...open, roundId: round.roundId })).rejects.toMatchObject({
        code: 'ROUND_CANCELLED',
      });
      await fixture.call('round.open', { ...open, roundId: 'again' });
      await worker.finishAll();
      expect(await status()).toMatchObject({ roundId: 'again', state: 'completed', acceptedGroups: 3 });
    });

    it('drops everything, counts it as waste, and a late completion changes nothing', async () => {
      const { round, worker } = await opened(2);
      const claims = await worker.claim(4);
      for (const claim of claims.slice(0, 3)) await worker.complete(claim, 5);
      const late = claims[3]!;
      const events: unknown[] = [];
      fixture.client.messaging.subscribe(eventSubject(fixture.pool, 'round.cancelled'), (body) => {
        events.push(body);
      });
      await fixture.call('round.cancel', { ...round, mode: 'drop', reason: 'diverged' });
      const cancelled = { roundId: round.roundId, step: 1, mode: 'drop', groups: 2, reason: 'diverged' };
      await expect.poll(() => events).toMatchObject([cancelled]);
      await expect.poll(async () => (await counts()).cutting).toBe(1);
      // After the sweep, the counts of the round are folded into the counts of the job.
      await fixture.swept();
      expect(await worker.complete(late, 7)).toMatchObject({ state: 'dropped' });
      expect(await counts()).toMatchObject({ submitted: 4, dropped: 4, cutting: 0 });
      expect(await status()).toMatchObject({ state: 'cancelled', droppedGroups: 2, wastedTokens: 22, settled: true });
      const { summary } = await fixture.call('job.ledger', { job });
      expect(summary.waste.byReason).toMatchObject({ aborted: 22 });
      const wanted = { job, groupsPerStep: 2, remainingGroups: 5, policy: POLICY };
      expect(await fixture.call('round.next', wanted)).toMatchObject({ step: 1, takeGroups: 0, newGroups: 2 });
    });

    it('gives up a completed round, but no closed round and no round of another trainer', async () => {
      const { round, worker } = await opened(1);
      await worker.finishAll();
      const cancel = (body: object) => fixture.call('round.cancel', { ...round, mode: 'requeue', ...body });
      await expect(cancel({ trainerEpoch: 'e7' })).rejects.toMatchObject({ code: 'FENCED' });
      await expect(cancel({ roundId: 'nothing' })).rejects.toMatchObject({ code: 'ROUND_NOT_FOUND' });
      await expect(cancel({ mode: 'forget' })).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'mode' });
      expect(await cancel({})).toMatchObject({ groups: 1 });
      await fixture.swept();
      expect((await queue()).groups).toMatchObject([{ finishedSamples: 2 }]);
      const { trainerEpoch } = round;
      const plan = { groupsPerStep: 1, remainingGroups: 0, policy: POLICY };
      const next = await fixture.call('round.next', { job, ...plan });
      const { kind, ...rest } = next;
      const open = { job, roundId: 'r2', kind: kind as 'long', policy: POLICY, weightVersion: 1, trainerEpoch };
      await fixture.call('round.open', { ...open, ...rest });
      await fixture.close({ job, roundId: 'r2', trainerEpoch });
      await expect(cancel({ roundId: 'r2' })).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
    });
  });
});
