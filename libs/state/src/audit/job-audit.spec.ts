import type { Claim, Epoch } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { SnapshotStore } from '../snapshots/snapshot.store';
import { RedisPayloadStore } from '../payload/redis-payload-store';
import { connectRedis } from '../redis';
import { RequestStore } from '../requests/request.store';
import { RoundStore } from '../rounds';
import { readAndClose } from '../rounds/test-pools.fixture';
import { WorkerStore } from '../workers/worker.store';
import { FunctionRunner } from '../library/function-runner';
import { PoolAudit } from './pool-audit';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
const payloads = new RedisPayloadStore(connectRedis({ url: testRedisUrl() }), prefix, 1_000_000);
const [rounds, requests, workers, snapshots] = [
  new RoundStore(runner),
  new RequestStore(runner),
  new WorkerStore(runner),
  new SnapshotStore(runner),
];
/** A short pause is enough, since only the test itself changes the pool. */
const PAUSE_MS = 10;
const audit = new PoolAudit(redis, runner, payloads, PAUSE_MS);
let pool: string;
let job: string;
let pools = 0;

beforeEach(() => {
  pool = `audit-${pools}`;
  job = `job-${pools++}`;
});
afterAll(async () => {
  await redis.quit();
  await payloads.close();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

const key = (name: string) => `${runner.rootKey(pool)}:${name}`;
const policy = { name: 'resume' as const, overProvision: 2 };

/** Opens a round of one step with groups of two samples. Groups that the round does not need are queued with tokens. */
async function open(step: number, neededGroups: number, newGroups: number, trainerEpoch?: Epoch) {
  const plan = { planId: 'p', step, kind: 'short' as const, neededGroups, takeGroups: 0, newGroups };
  const round = { job, roundId: `r${step}`, policy, weightVersion: 1, orphanAfterMs: 600_000 };
  const opened = await rounds.open(pool, { ...plan, ...round, ...roundTerms(policy, plan, {}), trainerEpoch });
  const groups = await Promise.all(
    Array.from({ length: newGroups }, async (_, index) => {
      const groupId = `g${step}-${index}`;
      const promptRef = await payloads.put({ pool, job, owner: groupId, name: 'prompt' }, Buffer.from('prompt'));
      return { groupId, digest: 'd', samples: 2, maxTokens: 10, promptRef, sampling: '{}' };
    }),
  );
  await rounds.submit(pool, { job, roundId: round.roundId, trainerEpoch: opened.trainerEpoch }, groups);
  return { job, roundId: round.roundId, trainerEpoch: opened.trainerEpoch };
}

/** A snapshot with a queue of two groups, then an open round with an accepted group, held and pending requests. */
async function jobInUse() {
  const worker = { workerId: 'w', registrationId: 'r', ttlMs: 600_000 };
  const { workerEpoch } = await workers.register(pool, worker);
  const holder = { workerId: 'w', workerEpoch };
  const fence = ({ requestId, attempt }: Claim) => ({ requestId, attempt, ...holder });
  const putTokens = async ({ requestId, attempt }: Claim) => {
    const ref = await payloads.put({ pool, job, owner: requestId, name: String(attempt) }, Buffer.from('tokens'));
    return { segment: JSON.stringify({ attempt, tokenCount: 3, ref }), tokens: 3 };
  };
  const claim = async (max: number, claimId: string) =>
    (await requests.claim(pool, { claimId, ...holder, max })).claims;

  const first = await open(1, 1, 3);
  const claims = await claim(6, 'c1');
  for (const one of claims.slice(0, 2)) {
    await requests.complete(pool, { ...fence(one), ...(await putTokens(one)), finishReason: 'stop' });
  }
  await rounds.cut(pool, { ...first, cursor: 0 });
  for (const one of claims.slice(2)) {
    const stopped = { reason: 'aborted', countsAsFailure: false, retryable: true } as const;
    await requests.fail(pool, { ...fence(one), ...(await putTokens(one)), ...stopped });
  }
  await readAndClose(rounds, pool, first);
  await rounds.fold(pool, first);
  await snapshots.save(pool, { job, trainerEpoch: first.trainerEpoch, tag: 'a' });
  await open(2, 2, 3, first.trainerEpoch);
  const later = await claim(3, 'c2');
  for (const one of later.slice(0, 2)) {
    await requests.complete(pool, { ...fence(one), ...(await putTokens(one)), finishReason: 'stop' });
  }
  await requests.save(pool, { ...fence(later[2]!), ...(await putTokens(later[2]!)) });
  return { workerEpoch, trainerEpoch: first.trainerEpoch };
}
const listChecks = (findings: { check: string }[]) => [...new Set(findings.map(({ check }) => check))].sort();

describe('the audit of a job', () => {
  it('finds groups, rounds, snapshots and payloads of a job in use as they should be', async () => {
    await jobInUse();
    expect(await audit.run(pool)).toMatchObject({
      balanced: true,
      findings: [],
      unproven: [],
      // Six prompts and the tokens of seven attempts; the trained ones of the first round are folded.
      counts: { jobs: 1, requests: 10, payloads: 12 },
    });
  });

  it('reports no finding for work that a sweep has not done yet', async () => {
    const { trainerEpoch } = await jobInUse();
    await rounds.cancel(pool, { job, roundId: 'r2', trainerEpoch, mode: 'requeue', reason: 'test' });
    expect((await audit.run(pool)).findings).toEqual([]);
    await rounds.giveBack(pool, { job, roundId: 'r2' });
    await rounds.cut(pool, { job, roundId: 'r2', cursor: 0 });
    expect((await audit.run(pool)).findings).toEqual([]);
  });

  const mended: [string, (its: { workerEpoch: Epoch }) => Promise<unknown>, string[]][] = [
    ['counters of a group', () => redis.hincrby(key(`group:${job}/g1-1`), 'finished', 1), ['group-counters']],
    ['a place in the queue', () => redis.zrem(key(`job-longtail:${job}`), 'g1-1'), ['group-longtail-queue']],
    [
      'a place in the queue of nobody',
      () => redis.zadd(key(`job-longtail:${job}`), 9, 'x'),
      ['longtail-without-group'],
    ],
    ['a pending request', () => redis.zrem(key(`job-pending:${job}`), `${job}/g2-2/1`), ['request-pending-queue']],
    [
      'the set of attempts of a worker',
      ({ workerEpoch }) => redis.del(key(`worker-attempts:w:${workerEpoch}`)),
      ['request-not-with-worker'],
    ],
    ['groups on their way', () => redis.hincrby(key(`job:${job}`), 'settlingGroups', 2), ['job-settling']],
    ['groups of a round', () => redis.hincrby(key(`round:${job}/r2`), 'liveGroups', 1), ['round-live']],
    ['accepted groups', () => redis.hset(key(`round:${job}/r2`), 'acceptedGroups', -1), ['round-accepted']],
    [
      'requests by state',
      () => redis.hset(key(`job-counts:${job}`), { running: -1, dropped: -2 }),
      ['counts-balance', 'counts-recount'],
    ],
    ['a round that nobody sweeps', () => redis.hset(key(`round:${job}/r1`), 'folded', 0), ['round-not-swept']],
    ['a round without a hash', () => redis.zadd(key(`job-rounds:${job}`), 9, 'r9'), ['round-without-hash']],
    [
      'a snapshot of nobody',
      () => redis.hset(key(`snapshot-groups:${job}/77`), 'g', '{"requests":[],"group":[]}'),
      ['snapshot-without-job'],
    ],
  ];
  it.each(mended)('finds and mends %s', async (_, damage, expected) => {
    await damage(await jobInUse());
    const found = await audit.run(pool);
    expect(listChecks(found.findings)).toEqual(expected);
    const after = await audit.run(pool, { repair: true });
    expect(listChecks(after.repaired)).toEqual(expected);
    expect(after).toMatchObject({ balanced: true, findings: [] });
  });

  it('ends the group of a request that is gone', async () => {
    await jobInUse();
    await redis.del(key(`request:${job}/g1-1/0`));
    expect(listChecks((await audit.run(pool)).findings)).toContain('request-missing');
    const { repaired, ...after } = await audit.run(pool, { repair: true });
    expect(listChecks(repaired)).toContain('request-missing');
    expect(after).toMatchObject({ balanced: true, findings: [] });
    expect(await redis.hget(key(`group:${job}/g1-1`), 'state')).toMatch(/^(dropped|aborting|failed)$/);
  });

  const told: [string, () => Promise<unknown>, string[]][] = [
    ['an accepted group that is not there', () => redis.rpush(key(`round-accepted:${job}/r2`), 'x'), ['round-group']],
    ['an open round that is not there', () => redis.hset(key(`job:${job}`), 'openRoundId', 'r0'), ['job-open-round']],
    ['a payload that is gone', () => payloads.remove([`redis~${pool}~${job}~g1-1~prompt`]), ['payload-missing']],
    ['a saved group that is gone', () => redis.hdel(key(`snapshot-groups:${job}/1`), 'g1-1'), ['snapshot-groups']],
    ['a snapshot without its header', () => redis.del(key(`snapshot:${job}/1`)), ['snapshot-without-header']],
  ];
  it.each(told)('reports %s, which it cannot mend', async (_, damage, expected) => {
    await jobInUse();
    await damage();
    const { findings, balanced } = await audit.run(pool, { repair: true });
    expect(balanced).toBe(false);
    expect(listChecks(findings)).toEqual(expected);
  });
});
