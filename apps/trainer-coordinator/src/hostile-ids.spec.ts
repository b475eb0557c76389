import {
  eventSubject,
  buildRequestId,
  workerCommandSubject,
  type AbortAttemptsCommand,
  type AbortRequestsRequest,
  type Claim,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type TailPolicy,
} from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CoordinatorFixture, type FixtureWorker, groups } from './coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1, { payloadDeleteAfterMs: 600_000 });
});
afterAll(() => fixture.stop());

const POLICY: TailPolicy = { name: 'wait', overProvision: 1 };
/** Without an encoding, ids of one job and its groups would be equal to ids of another job and its groups. */
const JOBS: Record<string, string[]> = {
  'a/b': ['c', 'c~d', '%2F', 'run 42 @ lr=1e-5 #3'],
  a: ['b/c', 'b/c~d', '/', '{x}'],
  'a~1b': ['c', '🚀', '_x', '..'],
  'a%2Fb': ['c', '|', 'a,b=c;d', '*'],
};

describe('ids that trainers use', () => {
  it('go through a round in jobs whose names would collide, and no id of one job is taken for an id of another', async () => {
    const { client, pool } = fixture;
    const worker = await fixture.worker('w');
    const rounds: { job: string; roundId: string; trainerEpoch: string }[] = [];
    for (const [job, groupIds] of Object.entries(JOBS)) {
      const input = { groupsPerStep: 4, remainingGroups: 4, policy: POLICY, roundId: `round 1/${job}` };
      const { roundId, trainerEpoch } = await fixture.open(job, input);
      rounds.push({ job, roundId, trainerEpoch });
      const templates = groups(4, 0, 1);
      const submitted = await Promise.all(
        groupIds.map(async (groupId, index) => {
          const data = Buffer.from(JSON.stringify({ text: `${job} ${groupId}` })).toString('base64');
          const chunk = { name: 'prompt', chunkIndex: 0, chunkCount: 1, data };
          const { ref } = await client.call(pool, 'payload.put', { job, groupId, ...chunk });
          return { ...templates[index]!, groupId, prompt: undefined, promptRef: ref! };
        }),
      );
      await client.call(pool, 'round.submit', { job, roundId, trainerEpoch, groups: submitted });
    }
    const claims: Claim[] = [];
    for (let page = await worker.claim(64); page.length > 0; page = await worker.claim(64)) claims.push(...page);
    const expected = Object.entries(JOBS).flatMap(([job, ids]) => ids.map((groupId) => ({ job, groupId })));
    expect(claims).toHaveLength(expected.length);
    expect(new Set(claims.map(({ requestId }) => requestId)).size).toBe(expected.length);
    for (const claim of claims) {
      const { job, groupId, requestId } = claim;
      expect(expected).toContainEqual({ job, groupId });
      expect(requestId).toBe(buildRequestId(job, groupId, 0));
      const prompt = await client.call(pool, 'payload.get', { ref: claim.promptRef! });
      expect(Buffer.from(prompt.data, 'base64').toString()).toBe(JSON.stringify({ text: `${job} ${groupId}` }));
      const ref = await fixture.put(claim, `${job} ${groupId} done`);
      const segment = { ...fixture.buildSegment(claim, 3), ref };
      const body = { ...worker.fence(claim), finishReason: 'stop' as const, segment };
      expect(await client.call(pool, 'request.complete', body)).toMatchObject({
        state: 'finished',
        groupAccepted: true,
      });
    }
    for (const round of rounds) {
      const { job } = round;
      const results = await client.call(pool, 'round.results', { ...round, limit: 16 });
      expect(results.groups.map(({ groupId }) => groupId).sort()).toEqual(JOBS[job]!.toSorted());
      for (const { groupId, samples } of results.groups) {
        const { data } = await client.call(pool, 'payload.get', { ref: samples[0]!.segments[0]!.ref });
        expect(Buffer.from(data, 'base64').toString()).toBe(`${job} ${groupId} done`);
      }
      expect(await client.call(pool, 'round.status', { job })).toMatchObject({
        roundId: round.roundId,
        acceptedGroups: 4,
      });
      expect(await fixture.close(round)).toMatchObject({ trainedGroups: 4 });
    }
    const { jobs } = await client.call(pool, 'job.list', {});
    expect(jobs.toSorted()).toEqual(Object.keys(JOBS).toSorted());
  });
});

/** Texts that contain an id of this file in its stored form. References are opaque and may contain such ids. */
function encodedTexts(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return !/ref$/i.test(name) && /%(?:20|25|40|7C|F0)/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, part]) => [...encodedTexts(field), ...encodedTexts(part, field)]);
}

describe('a job, its groups and a worker with ids that must be encoded', () => {
  const job = 'run 42/%7E @';
  const workerId = 'w@1/%';
  /** The first two have the form of requests of the job. */
  const groupIds = [`${job}/7`, `${job}/train/12`, 'x%41y ~|', '🚀 a/b'] as const;
  const requestIds = groupIds.map((groupId) => buildRequestId(job, groupId, 0));
  const policy: TailPolicy = { name: 'resume', overProvision: 5 };
  const sent: unknown[] = [];
  let worker: FixtureWorker;
  let trainer: { job: string; trainerEpoch: string };

  async function call<Name extends OperationName>(name: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    const reply = await fixture.call(name, body);
    sent.push(reply);
    return reply;
  }
  const abort = async (body: Omit<AbortRequestsRequest, 'abortId'>) =>
    (await call('request.abort', { abortId: `abort ${JSON.stringify(body).slice(0, 80)}`, ...body })).results;
  const findClaim = (claims: Claim[], index: number) => claims.find(({ groupId }) => groupId === groupIds[index])!;
  const handBack = (claim: Claim) =>
    call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true });

  beforeAll(async () => {
    fixture.freshPool();
    const listen = (subject: string) =>
      fixture.client.messaging.subscribe(subject, (body) => {
        sent.push(body);
      });
    listen(eventSubject(fixture.pool, '>'));
    listen(workerCommandSubject(fixture.pool, workerId, 'abort'));
    worker = await fixture.worker(workerId);
  });

  it('are aborted, and their worker gets the command', async () => {
    const { roundId, trainerEpoch } = await fixture.open(job, { groupsPerStep: 1, remainingGroups: 5, policy });
    trainer = { job, trainerEpoch };
    const templates = groups(4, 0, 1);
    const submitted = groupIds.map(async (groupId, index) => {
      const chunk = { name: 'prompt', chunkIndex: 0, chunkCount: 1, data: 'e30=' };
      const { ref: promptRef } = await call('payload.put', { job, groupId, ...chunk });
      return { ...templates[index]!, groupId, prompt: undefined, promptRef };
    });
    await call('round.submit', { ...trainer, roundId, groups: await Promise.all(submitted) });
    const claims = await worker.claim(64);
    expect(claims.map(({ requestId }) => requestId).sort()).toEqual(requestIds.toSorted());

    const [requestId, unknown] = [requestIds[3]!, buildRequestId(job, 'never/%', 0)];
    const body = { requestIds: [requestId, unknown] };
    expect(await abort(body)).toEqual([
      expect.objectContaining({ requestId, outcome: 'aborting' }),
      expect.objectContaining({ requestId: unknown, outcome: 'not-found' }),
    ]);
    const { attempt } = findClaim(claims, 3);
    const told = () => sent.flatMap((one) => (one as Partial<AbortAttemptsCommand>).attempts ?? []);
    await expect.poll(told).toContainEqual({ requestId, attempt });
    await handBack(findClaim(claims, 3));
    expect(await abort(body)).toContainEqual(expect.objectContaining({ requestId, outcome: 'aborted' }));
    expect(await abort({ job, groupId: groupIds[3] })).toMatchObject([{ requestId, outcome: 'aborted' }]);
    // Unknown groups that are submitted after their abort end dropped.
    const late = { ...templates[0]!, groupId: 'never/%' };
    await call('round.submit', { ...trainer, roundId, groups: [late] });
    expect((await call('round.status', { job })).droppedGroups).toBe(2);

    expect(await worker.complete(findClaim(claims, 0))).toMatchObject({ groupAccepted: true });
    for (const index of [1, 2]) await handBack(findClaim(claims, index));
    await fixture.close({ ...trainer, roundId });
    await fixture.swept();
  });

  it('are dropped from the long-tail queue, restored, reconciled, and change weights', async () => {
    const queued = async () => (await call('longtail.list', { job })).groups.map(({ groupId }) => groupId).sort();
    const both = [groupIds[1], groupIds[2]].toSorted();
    expect(await queued()).toEqual(both);
    const tag = 'step 1/% @';
    await expect.poll(async () => (await call('job.snapshot', { ...trainer, tag })).state).toBe('complete');
    expect(await call('job.snapshots', { job })).toMatchObject({ job, snapshots: [{ tag, groups: 2 }] });
    const drop = { ...trainer, groupIds: [...both, 'nobody/%'], reason: 'no variance' };
    const dropped = await call('longtail.drop', drop);
    expect(dropped.dropped.toSorted()).toEqual(both);
    expect(dropped.notQueued).toEqual(['nobody/%']);
    expect(await queued()).toEqual([]);
    await expect
      .poll(async () => {
        const { state, trainerEpoch } = await call('job.restore', { ...trainer, tag });
        trainer = { job, trainerEpoch };
        return state;
      })
      .toBe('restored');
    expect(await queued()).toEqual(both);
    const trained = { step: 2, groups: [{ groupId: groupIds[1], samples: 1 }], isLast: true };
    expect(await call('job.reconcile', { ...trainer, ...trained, groupIds: [groupIds[2], 'nobody/%'] })).toMatchObject({
      stepsTrained: 2,
      countedGroups: 1,
      unknown: ['nobody/%'],
    });
    expect(await queued()).toEqual([groupIds[2]]);
    const sync = { syncId: 'sync 3/%', version: 3 };
    await call('weights.begin', { ...trainer, ...sync, mode: 'keep' });
    expect(await call('weights.status', { syncId: sync.syncId })).toMatchObject({ sync: { ...sync, job } });
    expect(await call('weights.commit', { syncId: sync.syncId, trainerEpoch: trainer.trainerEpoch })).toMatchObject({
      state: 'committed',
      job,
    });
  });

  it('appear in no reply, event or command in their stored form', async () => {
    const failure = call('longtail.requeue', {
      job,
      workerId,
      workerEpoch: worker.workerEpoch,
      requests: [{ requestId: buildRequestId(job, 'nobody/%', 0), attempt: '1-a' }],
    });
    expect(JSON.stringify(await failure)).toContain('%');
    const types = () => sent.map((one) => (one as { type?: string }).type);
    for (const type of ['group.dropped', 'round.closed', 'weights.committed']) {
      await expect.poll(types).toContain(type);
    }
    expect(encodedTexts(sent)).toEqual([]);
  });
});
