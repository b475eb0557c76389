import {
  type AbortAttemptsCommand,
  type Claim,
  type RoundResultsReply,
  type TailPolicy,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { waitUntil } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../../../libs/platform/src/failpoint';
import { CoordinatorFixture, groups, openRequest } from './coordinator.fixture';

const RESUME: TailPolicy = { name: 'resume', overProvision: 2 };
const within = (what: string) => ({ what, timeoutMs: 20_000 });
const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };

describe('trainer-coordinator', () => {
  let fixture: CoordinatorFixture;

  beforeAll(async () => {
    fixture = await CoordinatorFixture.start();
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());
  afterEach(() => setFailpoints(''));

  const openRound = (policy: TailPolicy, needed: number, remaining?: number) =>
    fixture.openRound(policy, needed, remaining);

  it('cuts groups that a round does not need, and gives them back with all their tokens', async () => {
    const { job, round, plan } = await openRound(RESUME, 1, 2);
    expect(plan).toMatchObject({ kind: 'short', neededGroups: 1, newGroups: 2, takeGroups: 0 });
    await fixture.call('round.submit', { ...round, groups: groups(2) });
    const worker = await fixture.worker(`cut-${job}`);
    const aborts: AbortAttemptsCommand[] = [];
    fixture.client.messaging.subscribe(workerCommandSubject(fixture.pool, worker.workerId, 'abort'), (body) => {
      aborts.push(body as unknown as AbortAttemptsCommand);
    });
    const claims = await worker.claim(4);
    const [first, second, kept, cut] = claims as [Claim, Claim, Claim, Claim];
    await worker.complete(kept, 7);
    await fixture.call('request.save', { ...worker.fence(cut), segment: fixture.buildSegment(cut, 5) });
    expect(await worker.complete(first)).toEqual({ state: 'finished', groupAccepted: false, roundCompleted: false });
    expect(await worker.complete(second)).toEqual({ state: 'finished', groupAccepted: true, roundCompleted: true });

    await expect.poll(() => aborts.length).toBeGreaterThan(0);
    expect(aborts[0]).toEqual({
      workerEpoch: worker.workerEpoch,
      cause: 'cut',
      attempts: [{ requestId: cut.requestId, attempt: cut.attempt }],
    });
    const aborted = {
      ...worker.fence(cut),
      reason: 'aborted' as const,
      retryable: true,
      segment: fixture.buildSegment(cut, 6),
    };
    expect(await fixture.call('request.fail', aborted)).toEqual({ state: 'unfinished' });
    expect(await fixture.call('request.fail', aborted)).toEqual({ state: 'unfinished' });
    expect(await fixture.call('round.status', { job })).toMatchObject({
      state: 'completed',
      settled: true,
      acceptedGroups: 1,
      requestsDone: 3,
      requestsCut: 1,
      groupsRequeued: 1,
      wastedTokens: 0,
      completedReason: 'accepted',
    });
    const queued = { groupId: 'g1', cuts: 1, firstStep: 1, finishedSamples: 1, samples: 2, tokens: 13 };
    expect(await fixture.call('longtail.list', { job })).toEqual({ groups: [queued] });

    const results = await fixture.call('round.results', round);
    expect(results).toMatchObject({ state: 'completed', complete: true });
    expect(results.groups[0]).toMatchObject({ groupId: 'g0', cuts: 0, firstStep: 1 });
    expect(await fixture.close(round)).toMatchObject({
      roundId: 'round-1',
      stepsTrained: 1,
      trainedGroups: 1,
      trainedRequests: 2,
    });

    const { trainerEpoch } = round;
    const long = await fixture.open(job, { groupsPerStep: 1, remainingGroups: 0, policy: RESUME, trainerEpoch });
    expect(long).toMatchObject({ state: 'open', takenGroups: 1, plan: { kind: 'long', step: 2 } });
    const [again] = (await worker.claim(4)) as [Claim];
    expect(again).toMatchObject({
      requestId: cut.requestId,
      attempt: expect.stringMatching(/^2-/) as string,
      weightVersion: 2,
    });
    expect(again.segments).toEqual([fixture.buildSegment(cut, 6)]);
    expect(await worker.complete(again, 2)).toMatchObject({ groupAccepted: true, roundCompleted: true });
    const second_ = { job, roundId: 'round-2', trainerEpoch };
    const [group] = (await fixture.call('round.results', second_)).groups;
    expect(group).toMatchObject({ groupId: 'g1', cuts: 1, samples: [{ tokenCount: 7 }, { tokenCount: 8 }] });
    await fixture.close(second_);
    await expect
      .poll(async () => (await fixture.call('job.status', { job })).requests)
      .toMatchObject({ submitted: 4, trained: 4, finished: 0, unfinished: 0 });
    expect(
      await fixture.call('round.next', { job, groupsPerStep: 1, remainingGroups: 0, policy: RESUME }),
    ).toMatchObject({ kind: 'done', step: 3 });
  });

  it('throws all tokens of a cut group away under `regenerate`, and counts them', async () => {
    const { job, round } = await openRound({ name: 'regenerate', overProvision: 2 }, 1, 2);
    await fixture.call('round.submit', { ...round, groups: groups(2) });
    const worker = await fixture.worker(`regenerate-${job}`);
    const [first, second, done, running] = (await worker.claim(4)) as [Claim, Claim, Claim, Claim];
    await worker.complete(done, 7);
    await worker.complete(first);
    await worker.complete(second);
    expect(await worker.complete(running, 4)).toEqual({
      state: 'unfinished',
      groupAccepted: false,
      roundCompleted: true,
    });
    await expect.poll(async () => (await fixture.call('round.status', { job })).settled).toBe(true);
    expect(await fixture.call('round.status', { job })).toMatchObject({ wastedTokens: 11 });
    expect((await fixture.call('longtail.list', { job })).groups).toMatchObject([{ finishedSamples: 0, tokens: 0 }]);
  });

  it('opens a round once: the same request is a repeat, other parameters are a conflict', async () => {
    const job = fixture.newJob();
    const wanted = { groupsPerStep: 2, remainingGroups: 10, policy: WAIT };
    const plan = await fixture.call('round.next', { job, ...wanted });
    const request = openRequest(job, plan, WAIT);
    const opened = await fixture.call('round.open', request);
    expect(opened).toMatchObject({
      roundId: 'round-1',
      trainerEpoch: expect.any(String),
      state: 'open',
      takenGroups: 0,
    });
    expect(await fixture.call('round.open', request)).toEqual(opened);
    await expect(fixture.call('round.open', { ...request, policy: RESUME })).rejects.toMatchObject({
      code: 'ROUND_CONFLICT',
    });
    await expect(fixture.call('round.open', { ...request, roundId: 'another' })).rejects.toMatchObject({
      code: 'ROUND_CONFLICT',
    });
    await expect(fixture.call('round.next', { job, ...wanted })).rejects.toMatchObject({
      code: 'ROUND_CONFLICT',
    });
  });

  it('refuses plans that do not fit, and changes nothing', async () => {
    const job = fixture.newJob();
    const plan = await fixture.call('round.next', { job, groupsPerStep: 2, remainingGroups: 10, policy: WAIT });
    const request = openRequest(job, plan, WAIT);
    const refused = async (change: object, error: object): Promise<void> =>
      expect(fixture.call('round.open', { ...request, ...change })).rejects.toMatchObject(error);
    await refused({ neededGroups: 0 }, { code: 'VALIDATION_FAILED', field: 'neededGroups' });
    await refused({ neededGroups: 3 }, { code: 'VALIDATION_FAILED', field: 'neededGroups' });
    await refused({ policy: { name: 'wait', overProvision: 0.5 } }, { code: 'VALIDATION_FAILED' });
    await refused({ policy: { name: 'unheard', overProvision: 1 } }, { code: 'VALIDATION_FAILED' });
    await refused({ step: 7 }, { code: 'PLAN_STALE', field: 'step' });
    await refused({ takeGroups: 5 }, { code: 'PLAN_STALE', field: 'takeGroups' });
    await refused({ trainerEpoch: 'e4' }, { code: 'JOB_NOT_FOUND' });
    await expect(fixture.call('job.status', { job })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });

  it('refuses groups that do not fit as a whole page', async () => {
    const { job, round } = await openRound(WAIT, 3);
    const [good, bad] = groups(2) as [(typeof all)[0], (typeof all)[0]];
    const all = groups(5);
    const refused = async (page: object[], error: object): Promise<void> =>
      expect(fixture.call('round.submit', { ...round, groups: page as typeof all })).rejects.toMatchObject(error);
    await refused([good, good], { code: 'VALIDATION_FAILED', field: 'groups.1.groupId' });
    await refused([good, { ...bad, prompt: undefined }], { code: 'VALIDATION_FAILED', field: 'groups.1.prompt' });
    await refused([good, { ...bad, prompt: { text: 'a', promptTokenIds: [1] } }], { code: 'VALIDATION_FAILED' });
    await refused([good, { ...bad, prompt: { txt: 'a' } }], { field: 'groups.1.prompt.txt' });
    await refused([good, { ...bad, sampling: { top_p: 1 } }], { field: 'groups.1.sampling.top_p' });
    await refused([good, { ...bad, sampling: { stop: ['x'.repeat(5_000)] } }], { field: 'groups.1.sampling' });
    const named = { ...bad, prompt: undefined };
    await refused([good, { ...named, promptRef: 'nonsense' }], { field: 'groups.1.promptRef' });
    await refused([good, { ...named, promptRef: `redis~${fixture.pool}~${job}~gone~prompt` }], {
      code: 'PAYLOAD_NOT_FOUND',
      field: 'groups.1.promptRef',
    });
    await refused([good, { ...bad, prompt: { text: 'x'.repeat(40_000) } }], { code: 'PAYLOAD_TOO_LARGE' });
    await refused([good, { ...bad, samples: 0 }], { code: 'VALIDATION_FAILED' });
    await refused(groups(4), { code: 'VALIDATION_FAILED', field: 'groups' });
    expect(await fixture.call('job.status', { job })).toMatchObject({
      submittedGroups: 0,
      requests: { submitted: 0 },
    });

    const page = { ...round, groups: groups(3) };
    expect(await fixture.call('round.submit', page)).toMatchObject({ roundGroups: 3, added: 3, repeated: 0 });
    expect(await fixture.call('round.submit', page)).toMatchObject({ roundGroups: 3, added: 0, repeated: 3 });
    await refused([{ ...good, maxTokens: 5 }], { code: 'DUPLICATE_GROUP' });
  });

  it('fences the trainer that was replaced, and keeps its round', async () => {
    const { job, round } = await openRound(WAIT, 2);
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    const taken = await fixture.call('round.takeover', { job, takeoverId: 'second' });
    const { trainerEpoch } = taken;
    expect(trainerEpoch).not.toBe(round.trainerEpoch);
    expect(taken).toMatchObject({
      stepsTrained: 0,
      submittedGroups: 1,
      round: { roundId: 'round-1', state: 'open', trainerEpoch, roundGroups: 1 },
    });
    expect(await fixture.call('round.takeover', { job, takeoverId: 'second' })).toMatchObject({
      ...taken,
      stamp: expect.any(String),
    });
    await expect(fixture.call('round.submit', { ...round, groups: groups(1, 1) })).rejects.toMatchObject({
      code: 'FENCED',
    });
    await expect(fixture.close(round)).rejects.toMatchObject({ code: 'FENCED' });
    await fixture.call('round.submit', { ...round, trainerEpoch, groups: groups(1, 1) });
    await fixture.call('round.takeover', { job, takeoverId: 'third' });
    await expect(fixture.call('round.takeover', { job, takeoverId: 'second' })).rejects.toMatchObject({
      code: 'FENCED',
    });
  });

  it('closes a completed round once, and refuses later calls for it', async () => {
    const { round } = await openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    await expect(fixture.close(round)).rejects.toMatchObject({ code: 'ROUND_NOT_COMPLETED' });
    const worker = await fixture.worker('closes');
    const claims = await worker.claim(2);
    for (const claim of claims) await worker.complete(claim);
    await expect(fixture.call('round.submit', { ...round, groups: groups(1, 1) })).rejects.toMatchObject({
      code: 'ROUND_NOT_OPEN',
    });
    const { cursor } = await fixture.call('round.results', round);
    const closed = await fixture.call('round.close', { ...round, cursor });
    expect(await fixture.call('round.close', { ...round, cursor })).toEqual(closed);
    await fixture.swept();
    await expect(fixture.call('round.submit', { ...round, groups: groups(1, 1) })).rejects.toMatchObject({
      code: 'ROUND_CLOSED',
    });
    await expect(fixture.call('round.results', round)).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
    await expect(worker.complete(claims[0]!)).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
    await expect(worker.complete({ ...claims[0]!, job: 'nobody', requestId: 'nobody/g/0' })).rejects.toMatchObject({
      code: 'REQUEST_NOT_FOUND',
    });
  });

  it('completes a round with fewer groups at its deadline, or when no more groups are possible', async () => {
    const late = await openRound({ ...WAIT, deadlineMs: 60_000 }, 1);
    await fixture.call('round.submit', { ...late.round, groups: groups(1) });
    await fixture.deadlineComes(late.round);
    await expect
      .poll(() => fixture.call('round.status', { job: late.job }))
      .toMatchObject({ state: 'completed', completedReason: 'deadline', acceptedGroups: 0, settled: true });

    const fewer = await openRound({ ...WAIT, shortfall: 'accept-fewer' }, 2);
    await fixture.call('round.submit', { ...fewer.round, groups: groups(2, 0, 1) });
    const worker = await fixture.worker('fewer');
    const [broken, good] = (await worker.claim(2)) as [Claim, Claim];
    await fixture.call('request.fail', { ...worker.fence(broken), reason: 'engine-rejected', retryable: false });
    expect(await worker.complete(good)).toMatchObject({ roundCompleted: true });
    expect(await fixture.call('round.status', { job: fewer.job })).toMatchObject({
      completedReason: 'accepted-fewer',
      acceptedGroups: 1,
    });
  });

  it('continues where a replica died between two pages', async () => {
    const { job, round } = await openRound(RESUME, 140, 280);
    setFailpoints('coordinator.submit.between-pages=throw@1');
    const pages = [groups(100, 0, 2), groups(100, 100, 2), groups(80, 200, 2)];
    await expect(fixture.call('round.submit', { ...round, groups: pages[0]! })).rejects.toMatchObject({
      code: 'INTERNAL',
    });
    expect(await fixture.call('round.submit', { ...round, groups: pages[0]! })).toMatchObject({
      added: 84,
      repeated: 16,
    });
    for (const page of pages.slice(1)) await fixture.call('round.submit', { ...round, groups: page });
    const worker = await fixture.worker(`pages-${job}`);
    // Both samples of 140 groups are finished; the other 140 groups were never started.
    setFailpoints('coordinator.cut.between-pages=throw@1,coordinator.fold.between-pages=throw@1');
    for (let claimed = 0; claimed < 280;) {
      const claims = await worker.claim(Math.min(128, 280 - claimed));
      for (const claim of claims) await worker.complete(claim);
      claimed += claims.length;
    }
    await expect.poll(async () => (await fixture.call('round.status', { job })).settled).toBe(true);
    expect(await fixture.call('round.status', { job })).toMatchObject({ groupsRequeued: 140, requestsCut: 0 });
    await fixture.close(round);
    await fixture.swept();

    setFailpoints('coordinator.open.between-pages=throw@1');
    const { trainerEpoch } = round;
    const plan = await fixture.call('round.next', {
      job,
      groupsPerStep: 140,
      remainingGroups: 0,
      policy: RESUME,
    });
    const request = openRequest(job, plan, RESUME, { trainerEpoch });
    // The sweeper may meet the failpoint first; then the call of the trainer succeeds.
    await fixture
      .call('round.open', request)
      .catch((error: unknown) => expect(error).toMatchObject({ code: 'INTERNAL' }));
    // The trainer is slow; the sweeper opens the round.
    await expect.poll(async () => (await fixture.call('round.status', { job })).state).toBe('open');
    expect(await fixture.call('round.open', request)).toMatchObject({ state: 'open', takenGroups: 140 });
    await worker.finishAll();
    const all: string[] = [];
    for (let cursor: string | undefined, complete = false; !complete;) {
      const page: RoundResultsReply = await fixture.call('round.results', {
        job,
        roundId: request.roundId,
        cursor,
        limit: 50,
      });
      all.push(...page.groups.map((group) => group.groupId));
      ({ cursor, complete } = page);
    }
    expect(new Set(all).size).toBe(140);
    expect(all).toHaveLength(140);
  });

  it('lets a reader of results wait for the next group or the end of the round, at most for its waitMs', async () => {
    const { round } = await openRound(WAIT, 2);
    await fixture.call('round.submit', { ...round, groups: groups(2, 0, 1) });
    const worker = await fixture.worker('reader');
    const [first, second] = (await worker.claim(2)) as [Claim, Claim];
    const read = (cursor: string | undefined, waitMs: number) =>
      fixture.call('round.results', { ...round, cursor, waitMs });
    const nothing = await read(undefined, 30);
    expect(nothing).toMatchObject({ groups: [], complete: false });
    const waiting = read(nothing.cursor, 20_000);
    await worker.complete(first);
    const page = await waiting;
    expect(page).toMatchObject({ groups: [{ groupId: first.groupId }], complete: false });
    const waitingForEnd = read(page.cursor, 20_000);
    await worker.complete(second);
    const last = await waitingForEnd;
    expect(last).toMatchObject({ groups: [{ groupId: second.groupId }], complete: true });
    expect(await read(last.cursor, 20_000)).toMatchObject({ groups: [], complete: true });
    const { cursor } = last;
    await fixture.call('round.close', { ...round, cursor });
    await expect(read(undefined, 20_000)).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
  });

  it('publishes events from the outbox, in order and without a gap', async () => {
    const events: { type: string; sequence: number; job?: string; policy?: string }[] = [];
    fixture.client.messaging.subscribe(`rollout.v1.${fixture.pool}.event.>`, (body) => {
      events.push(body as unknown as (typeof events)[0]);
    });
    const { job, round } = await openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
    const worker = await fixture.worker('events');
    await worker.finishAll();
    await fixture.close(round);
    const wanted = ['round.opened', 'round.progressed', 'round.completed', 'round.closed'];
    await expect
      .poll(() => events.filter((event) => event.job === job).map((event) => event.type))
      .toEqual(expect.arrayContaining(wanted));
    expect(events.find((event) => event.job === job && event.type === 'round.opened')?.policy).toBe(WAIT.name);
    await waitUntil(
      async () => (await fixture.redis.xlen(`${fixture.rootKey}:events`)) === 0,
      within('the events to be relayed'),
    );
  });
});
