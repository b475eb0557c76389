import { type ClaimTurns, returnToLine, takeTurns, type TurnJob } from '@broomwagon/models';
import { roundTerms } from '@broomwagon/policies';
import type { Claim, Epoch } from '@broomwagon/contracts';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import fc from 'fast-check';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { connectRedis } from '../redis';
import { RequestStore } from '../requests/request.store';
import { RoundStore } from '../rounds';
import { WorkerStore } from '../workers/worker.store';
import { FunctionRunner } from '../library/function-runner';
import { JobStore } from './job.store';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
const [rounds, requests, workers, jobs] = [
  new RoundStore(runner),
  new RequestStore(runner),
  new WorkerStore(runner),
  new JobStore(runner),
];
const NAMES = ['a', 'b', 'c'];
const MAX_GROUPS = 2_000;
/** Random event streams per property. */
const RUNS = 10 * inject('runsFactor');
let pools = 0;

afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

/** A pool with three jobs of one open round each, a worker, and its claims by job. */
async function openJobs() {
  const pool = `turns-${pools++}`;
  const plan = { planId: 'p', step: 1, kind: 'short' as const, neededGroups: MAX_GROUPS, takeGroups: 0 };
  const policy = { name: 'wait' as const, overProvision: 1 };
  const epochs = new Map<string, Epoch>();
  for (const job of NAMES) {
    const round = { job, roundId: 'r', policy, weightVersion: 1, orphanAfterMs: 600_000, newGroups: MAX_GROUPS };
    const opened = await rounds.open(pool, { ...plan, ...round, ...roundTerms(policy, plan, {}) });
    epochs.set(round.job, opened.trainerEpoch);
  }
  const worker = { workerId: 'w', registrationId: 'r', ttlMs: 600_000 };
  const { workerEpoch } = await workers.register(pool, worker);
  const holder = { workerId: 'w', workerEpoch };
  const submitted = new Map(NAMES.map((job) => [job, 0]));
  const held = new Map<string, Claim[]>(NAMES.map((job) => [job, []]));
  let claims = 0;
  return {
    pool,
    holder,
    held,
    async submit(job: string, count: number) {
      const from = submitted.get(job)!;
      submitted.set(job, from + count);
      const group = { digest: 'd', samples: 1, maxTokens: 10, promptRef: 'p', sampling: '{}' };
      const page = Array.from({ length: count }, (_, index) => ({ ...group, groupId: `g${from + index}` }));
      await rounds.submit(pool, { job, roundId: 'r', trainerEpoch: epochs.get(job)! }, page);
    },
    async claim(max: number, job?: string) {
      const answer = await requests.claim(pool, { claimId: `c${claims++}`, ...holder, max, job });
      const given: { job: string; requests: number }[] = [];
      for (const claim of answer.claims) {
        held.get(claim.job)!.push(claim);
        if (given.at(-1)?.job !== claim.job) given.push({ job: claim.job, requests: 0 });
        given.at(-1)!.requests += 1;
      }
      return given;
    },
    async end(job: string) {
      const { requestId, attempt } = held.get(job)!.pop()!;
      return requests.complete(pool, { requestId, attempt, ...holder, tokens: 0, finishReason: 'stop' });
    },
  };
}

describe('claims of several jobs', () => {
  it('are granted in the turns of the policy at every step', async () => {
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.nat()), async (stream) => {
        const decide = (choices: number) => (stream.next().value as number) % choices;
        const world = await openJobs();
        const quota = { weight: 1 };
        let turns: ClaimTurns = {
          present: 0,
          jobs: NAMES.map((job) => ({ job, quota, pending: 0, inFlight: 0, service: 0 })),
        };
        const change = (job: TurnJob, changes: Partial<TurnJob>) => {
          turns = returnToLine(turns, { ...job, ...changes });
        };
        for (let event = 0; event < 60; event++) {
          const job = turns.jobs[decide(NAMES.length)]!;
          const kind = decide(8);
          if (kind < 3) {
            const max = 1 + decide(12);
            const only = decide(3) === 0 ? job.job : undefined;
            const answer = takeTurns(turns, max, only);
            ({ turns } = answer);
            expect(await world.claim(max, only)).toEqual(answer.given);
          } else if (kind < 5) {
            const count = 1 + decide(10);
            await world.submit(job.job, count);
            change(job, { pending: job.pending + count });
          } else if (kind < 7 && job.inFlight > 0) {
            await world.end(job.job);
            change(job, { inFlight: job.inFlight - 1 });
          } else if (kind === 7) {
            const wanted = { weight: 1 + decide(4), ...(decide(2) === 0 && { maxInFlight: decide(6) }) };
            expect(await jobs.configure(world.pool, { job: job.job, ...wanted })).toMatchObject({
              inFlight: job.inFlight,
            });
            change(job, { quota: wanted });
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('may be for one job, and wait for it alone while others are served', async () => {
    const world = await openJobs();
    await world.submit('a', 8);
    expect(await world.claim(10, 'b')).toEqual([]);
    const park = (claimId: string, job?: string) =>
      requests.claim(world.pool, { claimId, ...world.holder, max: 2, job, waitMs: 60_000, replyTo: claimId });
    await park('of-b', 'b');
    await park('also-of-b', 'b');
    await world.claim(10);
    await park('of-any');
    await park('of-c', 'c');
    const grants = async () => {
      const page = await requests.grantClaims(world.pool);
      return page.grants.map(({ replyTo, claims }) => [replyTo, claims.map(({ groupId, job }) => `${job}/${groupId}`)]);
    };
    expect(await grants()).toEqual([]);
    await world.submit('c', 3);
    expect(await grants()).toEqual([
      ['of-any', ['c/g0', 'c/g1']],
      ['of-c', ['c/g2']],
    ]);
    // Other jobs have had less, but no claim for them is parked.
    await park('of-a', 'a');
    await world.submit('a', 1);
    await world.submit('b', 5);
    expect(await grants()).toEqual([
      ['of-b', ['b/g0', 'b/g1']],
      ['also-of-b', ['b/g2', 'b/g3']],
      ['of-a', ['a/g8']],
    ]);
    const waiters = await redis.keys(`${runner.rootKey(world.pool)}:waiters:claim*`);
    expect(waiters).toEqual([]);
  });

  it('give a job that joins its fair share, even after claims that named another job', async () => {
    const world = await openJobs();
    await world.submit('b', 9);
    await world.submit('c', 20);
    for (const _ of [1, 2]) expect(await world.claim(9, 'c')).toEqual([{ job: 'c', requests: 9 }]);
    await world.submit('a', 9);
    expect(await world.claim(20)).toEqual([
      { job: 'a', requests: 9 },
      { job: 'b', requests: 9 },
      { job: 'c', requests: 2 },
    ]);
  });

  it('are reported as possible again when a job at its cap has room', async () => {
    const world = await openJobs();
    await jobs.configure(world.pool, { job: 'a', weight: 1, maxInFlight: 2 });
    await world.submit('a', 5);
    expect(await world.claim(10)).toEqual([{ job: 'a', requests: 2 }]);
    expect(await world.claim(10)).toEqual([]);
    expect(await world.end('a')).toMatchObject({ madeRoom: true });
    expect(await world.claim(10)).toEqual([{ job: 'a', requests: 1 }]);
    expect(await jobs.configure(world.pool, { job: 'a' })).toEqual({
      job: 'a',
      quota: { weight: 1, maxInFlight: 2 },
      version: 1,
      inFlight: 2,
      madeRoom: false,
    });
    expect(await world.claim(10)).toEqual([]);
    expect(await jobs.configure(world.pool, { job: 'a', weight: 1 })).toMatchObject({ madeRoom: true });
    expect(await world.claim(10)).toEqual([{ job: 'a', requests: 2 }]);
  });

  it('let unknown jobs have few lanes only, so that a grant reads few', async () => {
    const { pool, holder, submit } = await openJobs();
    const wait = (claimId: string, job: string) =>
      requests.claim(pool, { claimId, ...holder, max: 1, job, waitMs: 30_000, replyTo: `inbox.${claimId}` });
    for (let lane = 0; lane < 64; lane++)
      expect(await wait(`invented-${lane}`, `j${lane}`)).toMatchObject({ parked: true });
    await expect(wait('one-more', 'j64')).rejects.toMatchObject({
      code: 'QUEUE_FULL',
      field: 'job',
      retryAfterMs: 1_000,
    });
    // An existing lane takes further claims, and so do jobs that have opened a round.
    expect(await wait('again', 'j0')).toMatchObject({ parked: true });
    for (const job of NAMES) expect(await wait(`known-${job}`, job)).toMatchObject({ parked: true });
    for (const job of NAMES) await submit(job, 1);
    const { grants } = await requests.grantClaims(pool);
    expect(grants.map(({ replyTo }) => replyTo)).toEqual(NAMES.map((job) => `inbox.known-${job}`));
  });
});
