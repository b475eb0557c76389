import { roundTerms } from '@broomwagon/policies';
import type { Claim } from '@broomwagon/contracts';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { RoundStore } from '../rounds';
import { RoutingStore } from '../routing';
import { ScriptRunner } from '../scripts/script-runner';
import { RequestStore } from './request.store';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new ScriptRunner(redis, prefix);
const [rounds, requests, routing] = [new RoundStore(runner), new RequestStore(runner), new RoutingStore(runner)];
const job = 'job';
let pool: string;
let pools = 0;
let holder: { workerId: string; workerEpoch: number };

beforeEach(async () => {
  pool = `lost-${pools++}`;
  const plan = { planId: 'p', step: 1, kind: 'short' as const, neededGroups: 3, takeGroups: 0, newGroups: 3 };
  const policy = { name: 'resume' as const, overProvision: 1 };
  const round = { job, roundId: 'r', policy, weightVersion: 1, orphanAfterMs: 600_000 };
  await rounds.open(pool, { ...plan, ...round, ...roundTerms(policy, plan, {}) });
  const group = { digest: 'd', samples: 2, maxTokens: 10, promptRef: 'p', sampling: '{}' };
  const groups = ['g0', 'g1', 'g2'].map((groupId) => ({ ...group, groupId }));
  await rounds.submit(pool, { job, roundId: 'r', trainerEpoch: 1 }, groups);
  const worker = { workerId: 'w', registrationId: 'r', ttlMs: 600_000 };
  holder = { workerId: 'w', workerEpoch: (await routing.registerWorker(pool, worker)).workerEpoch };
});
afterAll(async () => {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

const lose = (name: string) => redis.unlink(`${runner.rootKey(pool)}:${name}`);
let claims = 0;
const claim = async (max: number) => (await requests.claim(pool, { claimId: `c${claims++}`, ...holder, max })).claims;
const books = async () => (await rounds.jobStatus(pool, job)).requests;
const lost = async () => (await rounds.due(pool)).lostEntries;
const idsOf = (given: readonly Claim[]) => given.map(({ requestId }) => requestId);

describe('what an index names and is not there', () => {
  it('fails the group of a pending request that is gone, and gives the others out', async () => {
    await lose('request:job/g0/1');
    expect(idsOf(await claim(10))).toEqual(['job/g0/0', 'job/g1/0', 'job/g1/1', 'job/g2/0', 'job/g2/1']);
    expect(await rounds.status(pool, { job })).toMatchObject({ failedGroups: 1, shortfallGroups: 1 });
    expect(await books()).toMatchObject({ submitted: 6, pending: 0, claimed: 4, dropped: 2 });
    expect(await lost()).toBe(1);
  });

  it('returns what a void worker had beside a request that is gone', async () => {
    expect(await claim(10)).toHaveLength(6);
    await lose('request:job/g1/0');
    await routing.deregisterWorker(pool, holder.workerId, holder.workerEpoch);
    for (let more = true; more;) ({ more } = await requests.voidAttempts(pool));
    expect((await rounds.due(pool)).voidEpochs).toBe(0);
    expect(await books()).toMatchObject({ submitted: 6, pending: 4, claimed: 0, dropped: 2 });
    expect(await lost()).toBe(1);
  });

  it('drops the requests of a group that is gone', async () => {
    expect(await claim(1)).toHaveLength(1);
    await lose('group:job/g0');
    expect(idsOf(await claim(10))).toEqual(['job/g1/0', 'job/g1/1', 'job/g2/0', 'job/g2/1']);
    await routing.deregisterWorker(pool, holder.workerId, holder.workerEpoch);
    for (let more = true; more;) ({ more } = await requests.voidAttempts(pool));
    expect(await books()).toMatchObject({ submitted: 6, pending: 4, claimed: 0, dropped: 2 });
    expect(await redis.keys(`${runner.rootKey(pool)}:*:job/g0*`)).toEqual([]);
  });

  it('drops the groups of a round that is gone', async () => {
    await lose('round:job/r');
    expect(await claim(10)).toEqual([]);
    expect(await books()).toMatchObject({ submitted: 6, pending: 0, dropped: 6 });
    expect(await rounds.due(pool)).toMatchObject({ dropped: 3, lostEntries: 3 });
  });

  it('answers the parked claims behind one that is gone', async () => {
    await lose('job-pending:job');
    const parked = { waitMs: 30_000, max: 2, ...holder };
    for (const name of ['first', 'second']) {
      await requests.claim(pool, { claimId: name, replyTo: `inbox.${name}`, ...parked });
    }
    await redis.hdel(`${runner.rootKey(pool)}:waiters:claim`, 'first');
    await redis.zadd(`${runner.rootKey(pool)}:job-pending:job`, 1, 'job/g0/0');
    await redis.zadd(`${runner.rootKey(pool)}:jobs:claimable`, 1, job);
    const { grants } = await requests.grantClaims(pool);
    expect(grants.map(({ replyTo, claims: given }) => [replyTo, idsOf(given)])).toEqual([
      ['inbox.second', ['job/g0/0']],
    ]);
    expect(await requests.expireClaims(pool)).toEqual({ replyTo: [], more: false });
  });
});
