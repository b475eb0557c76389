import { isBroomwagonError, type Claim, type GroupSubmission, type TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };
const RESUME: TailPolicy = { name: 'resume', overProvision: 2 };

describe('owners of payloads', () => {
  let fixture: CoordinatorFixture;

  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  const read = async (pool: string, ref: string) =>
    Buffer.from((await fixture.client.call(pool, 'payload.get', { ref })).data, 'base64').toString();

  const exists = (ref: string) =>
    fixture.call('payload.stat', { ref }).then(
      () => true,
      (error: unknown) => {
        if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) return false;
        throw error;
      },
    );

  /** Opens a round of one group with this prompt in the pool of the fixture, and claims its request. */
  async function begin(job: string, group: Partial<GroupSubmission>) {
    const plan = { groupsPerStep: 1, remainingGroups: 1, policy: WAIT };
    const { roundId, trainerEpoch } = await fixture.open(job, plan);
    const round = { job, roundId, trainerEpoch };
    const groups = [{ groupId: 'prompt-7', samples: 1, maxTokens: 10, ...group }];
    await fixture.call('round.submit', { ...round, groups });
    const worker = await fixture.worker(`worker-of-${fixture.pool}`);
    const [claim] = await worker.claim(1);
    const ref = await fixture.put(claim!, `tokens of ${fixture.pool}`);
    return { pool: fixture.pool, round, worker, claim: claim!, ref };
  }

  it('keeps jobs and groups of the same name in two pools apart, until the round of one is closed and after', async () => {
    const actor = await begin('run42', { prompt: { text: 'for the actor' } });
    fixture.freshPool();
    const reward = await begin('run42', { prompt: { text: 'for the reward model' } });
    expect(reward.claim.requestId).toBe(actor.claim.requestId);
    expect(JSON.parse(await read(actor.pool, actor.claim.promptRef))).toEqual({ text: 'for the actor' });
    expect(JSON.parse(await read(reward.pool, reward.claim.promptRef))).toEqual({ text: 'for the reward model' });
    expect(await read(actor.pool, actor.ref)).toBe(`tokens of ${actor.pool}`);

    await reward.worker.complete(reward.claim);
    await fixture.close(reward.round, reward.pool);
    await fixture.swept();
    expect(await read(actor.pool, actor.ref)).toBe(`tokens of ${actor.pool}`);
    expect(await read(actor.pool, actor.claim.promptRef)).toContain('for the actor');
  });

  it('refuses a reference of another pool', async () => {
    const actor = await begin('run42', { prompt: { text: 'for the actor' } });
    fixture.freshPool();
    const foreign = { code: 'PAYLOAD_FOREIGN', retryable: false, field: 'ref' };
    for (const operation of ['payload.get', 'payload.stat'] as const) {
      await expect(fixture.call(operation, { ref: actor.ref })).rejects.toMatchObject(foreign);
    }
    await expect(begin('run42', { promptRef: actor.claim.promptRef })).rejects.toMatchObject({
      code: 'PAYLOAD_FOREIGN',
      field: 'groups.0.promptRef',
    });
  });

  it('refuses tokens of anything but the request itself, before anything is changed', async () => {
    const other = await begin('other-job', { prompt: { text: 'another job' } });
    const { job, round } = await fixture.openRound(WAIT, 2);
    await fixture.call('round.submit', { ...round, groups: groups(2, 0, 1) });
    const worker = await fixture.worker('worker');
    const [mine, theirs] = (await worker.claim(2)) as [Claim, Claim];
    const accepted = await fixture.put(theirs, 'accepted');
    await fixture.call('request.complete', {
      ...worker.fence(theirs),
      finishReason: 'stop',
      segment: { ...fixture.buildSegment(theirs, 3), ref: accepted },
    });
    const hash = `${fixture.rootKey}:request:${mine.requestId}`;
    const before = await fixture.redis.hgetall(hash);

    const foreign: [ref: string, code: string][] = [
      [accepted, 'PAYLOAD_FOREIGN'],
      [other.ref, 'PAYLOAD_FOREIGN'],
      [mine.promptRef, 'PAYLOAD_FOREIGN'],
      [accepted.replace('g1', 'g0').replace(fixture.pool, 'p'), 'PAYLOAD_FOREIGN'],
      [accepted.replace('g1', 'g0').replace('redis~', 'tape~'), 'VALIDATION_FAILED'],
      ['nonsense', 'VALIDATION_FAILED'],
    ];
    for (const [ref, code] of foreign) {
      const body = { ...worker.fence(mine), segment: { ...fixture.buildSegment(mine, 5), ref } };
      const refused = { code, retryable: false, field: 'segment.ref' };
      await expect(fixture.call('request.save', body)).rejects.toMatchObject(refused);
      const completed = fixture.call('request.complete', { ...body, finishReason: 'stop' });
      await expect(completed).rejects.toMatchObject(refused);
      const failed = fixture.call('request.fail', { ...body, reason: 'engine-error', retryable: false });
      await expect(failed).rejects.toMatchObject(refused);
      const { requestId, attempt, workerId, workerEpoch } = worker.fence(mine);
      const requests = [{ requestId, attempt, segment: body.segment }];
      const requeued = fixture.call('longtail.requeue', { job, workerId, workerEpoch, requests });
      await expect(requeued).rejects.toMatchObject({ code, field: 'requests.0.segment.ref' });
    }
    expect(await fixture.redis.hgetall(hash)).toEqual(before);

    // The tokens of the other request stay when this one fails for good, and are removed when its round is closed.
    const ref = await fixture.put(mine, 'wasted');
    const segment = { ...fixture.buildSegment(mine, 5), ref };
    await fixture.call('request.fail', {
      ...worker.fence(mine),
      reason: 'engine-error',
      retryable: false,
      segment,
    });
    await expect.poll(() => exists(ref)).toBe(false);
    expect(await exists(accepted)).toBe(true);
    expect(await exists(other.ref)).toBe(true);
  });

  it('finishes no sample whose tokens are missing, and finishes it with others', async () => {
    const { round } = await fixture.openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
    const worker = await fixture.worker('worker');
    const [claim] = await worker.claim(1);
    const ref = await fixture.put(claim!, 'to be lost');
    const body = { ...worker.fence(claim!), finishReason: 'stop' as const };
    const segment = { ...fixture.buildSegment(claim!, 4), ref };
    const [item] = (await fixture.redis.keys(`*:payload:{${fixture.pool}/*}:item:*~${claim!.attempt}`)) as [string];
    await fixture.redis.del(item);
    const hash = `${fixture.rootKey}:request:${claim!.requestId}`;
    const before = await fixture.redis.hgetall(hash);
    await expect(fixture.call('request.complete', { ...body, segment })).rejects.toMatchObject({
      code: 'PAYLOAD_NOT_FOUND',
      retryable: false,
      field: 'segment.ref',
    });
    expect(await fixture.redis.hgetall(hash)).toEqual(before);
    await worker.complete(claim!);
    await fixture.close(round);
  });

  it('answers that an attempt has ended, not that its tokens are missing', async () => {
    const { round } = await fixture.openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1) });
    const worker = await fixture.worker('worker');
    const claims = await worker.claim(2);
    const [first] = claims as [Claim];
    const ended = { ...worker.fence(first), segment: fixture.buildSegment(first, 3) };
    const calls = (body: typeof ended) => [
      () => fixture.call('request.complete', { ...body, finishReason: 'stop' }),
      () => fixture.call('request.save', body),
    ];
    for (const claim of claims) await worker.complete(claim);
    const [item] = (await fixture.redis.keys(`*:payload:{${fixture.pool}/*}:item:*${first.attempt}`)) as [string];
    await fixture.redis.del(item);
    // A repeated call, whose answer was lost.
    expect(await calls(ended)[0]!()).toMatchObject({ state: 'finished', groupAccepted: true });
    expect(await calls(ended)[1]!()).toEqual({ action: 'abort' });
    const other = `9${first.attempt.slice(1)}`;
    const fenced = { ...ended, attempt: other, segment: { ...ended.segment, attempt: other } };
    for (const call of calls(fenced)) await expect(call()).rejects.toMatchObject({ code: 'FENCED' });
    await fixture.close(round);
    await fixture.swept();
    for (const call of calls(ended)) await expect(call()).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
    const never = { ...first, requestId: 'never-opened/g0/0', job: 'never-opened' };
    for (const call of calls({ ...worker.fence(never), segment: fixture.buildSegment(never, 3) }))
      await expect(call()).rejects.toMatchObject({ code: 'REQUEST_NOT_FOUND' });
  });

  it('costs a request the missing segment and the segments after it, and no other', async () => {
    const { job, round } = await fixture.openRound(WAIT, 1);
    await fixture.call('round.submit', { ...round, groups: groups(1, 0, 1) });
    const worker = await fixture.worker('worker');
    const refs: string[] = [];
    const handBack = { reason: 'aborted' as const, retryable: true };
    for (let attempt = 1; attempt <= 3; attempt++) {
      const [claim] = await worker.claim(1);
      refs.push(await fixture.put(claim!, `{"text":"tokens ${attempt}"}`));
      const segment = { ...fixture.buildSegment(claim!, 4), ref: refs.at(-1)! };
      await fixture.call('request.fail', { ...worker.fence(claim!), ...handBack, segment });
    }
    const [name] = (await fixture.redis.keys(`*:payload:{${fixture.pool}/${job}}:item:*~2-*`)) as [string];
    await fixture.redis.del(name);
    const [claim] = await worker.claim(1);
    expect(claim!.segments.map(({ ref }) => ref)).toEqual(refs);
    const lost = { ...worker.fence(claim!), reason: 'payload' as const, retryable: true };
    // A segment that exists is not forgotten: the worker uses another store.
    await fixture.call('request.fail', { ...lost, missingRef: refs[0] });
    const [second] = await worker.claim(1);
    expect(second!.segments).toHaveLength(3);
    const foreign = fixture.call('request.fail', {
      ...lost,
      attempt: second!.attempt,
      missingRef: second!.promptRef,
    });
    await expect(foreign).rejects.toMatchObject({ code: 'PAYLOAD_FOREIGN', field: 'missingRef' });
    await fixture.call('request.fail', { ...lost, attempt: second!.attempt, missingRef: refs[1] });
    const [third] = await worker.claim(1);
    expect(third!.segments.map(({ ref }) => ref)).toEqual([refs[0]]);
    expect(await worker.complete(third!)).toMatchObject({ state: 'finished', groupAccepted: true });
    await fixture.removed();
    expect(await exists(refs[0]!)).toBe(true);
    expect(await exists(refs[2]!)).toBe(false);
    const status = await fixture.call('round.status', { job });
    expect(status).toMatchObject({ failedGroups: 0, wastedByReason: { missing: 8 } });
  });

  it('keeps a prompt while a group or a snapshot refers to it', async () => {
    const job = fixture.newJob();
    const prompt = { job, groupId: 'prompts', name: 'shared', chunkIndex: 0, chunkCount: 1 };
    const data = Buffer.from('{"text":"shared"}').toString('base64');
    const { ref: promptRef } = await fixture.call('payload.put', { ...prompt, data });
    const shared = (from: number) =>
      groups(1, from, 1).map((group) => ({ ...group, prompt: undefined, promptRef: promptRef! }));
    const worker = await fixture.worker('worker');
    let trainerEpoch: Awaited<ReturnType<typeof fixture.open>>['trainerEpoch'] | undefined;
    // Each step trains one group and leaves the other in the queue.
    const step = async (from: number, taken: number) => {
      const plan = { groupsPerStep: 1 + taken, remainingGroups: 2 - 2 * taken, policy: RESUME, trainerEpoch };
      const opened = await fixture.open(job, plan);
      ({ trainerEpoch } = opened);
      const round = { job, roundId: opened.roundId, trainerEpoch };
      const fresh = taken > 0 ? [] : [...shared(from), ...shared(from + 1)];
      if (fresh.length > 0) await fixture.call('round.submit', { ...round, groups: fresh });
      const [first, ...others] = await worker.claim(2);
      await worker.complete(first!);
      for (const claim of others) {
        await fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true });
      }
      await fixture.close(round);
      await fixture.swept();
    };
    await step(0, 0);
    await fixture.removed();
    expect(await exists(promptRef!)).toBe(true);
    const save = { job, trainerEpoch: trainerEpoch!, tag: 'a' };
    expect(await fixture.call('job.snapshot', save)).toMatchObject({ state: 'complete', groups: 1 });
    await fixture.call('longtail.drop', { job, trainerEpoch: trainerEpoch!, all: true, reason: 'done' });
    await expect.poll(() => fixture.redis.keys(`${fixture.rootKey}:group:${job}/*`)).toEqual([]);
    await fixture.removed();
    expect(await exists(promptRef!)).toBe(true);
    for (const tag of ['b', 'c']) {
      expect(await fixture.call('job.snapshot', { ...save, tag })).toMatchObject({ state: 'complete' });
    }
    await expect.poll(() => exists(promptRef!)).toBe(false);
    expect(await fixture.redis.exists(`${fixture.rootKey}:job-prompts:${job}`)).toBe(0);
  });
});
