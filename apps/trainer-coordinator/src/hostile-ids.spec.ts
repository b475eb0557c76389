import { requestIdOf, type Claim, type TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from './coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1, { payloadDeleteAfterMs: 600_000 });
});
afterAll(() => fixture.stop());

const POLICY: TailPolicy = { name: 'wait', overProvision: 1 };
/** Each pair of a job and its groups would be written as the other without an encoding. */
const JOBS: Record<string, string[]> = {
  'a/b': ['c', 'c~d', '%2F', 'run 42 @ lr=1e-5 #3'],
  a: ['b/c', 'b/c~d', '/', '{x}'],
  'a~1b': ['c', '🚀', '_x', '..'],
  'a%2Fb': ['c', '|', 'a,b=c;d', '*'],
};

describe('ids that trainers use', () => {
  it('go through a round in jobs whose names would collide, and nothing of one is taken for that of another', async () => {
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
          const { ref } = await client.call(pool, 'payload.put', { job, owner: groupId, ...chunk });
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
      expect(requestId).toBe(requestIdOf(job, groupId, 0));
      const prompt = await client.call(pool, 'payload.get', { ref: claim.promptRef! });
      expect(Buffer.from(prompt.data, 'base64').toString()).toBe(JSON.stringify({ text: `${job} ${groupId}` }));
      const ref = await fixture.put(claim, `${job} ${groupId} done`);
      const segment = { ...fixture.segmentOf(claim, 3), ref };
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
