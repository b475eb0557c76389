import type { Epoch } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { AbortStore } from '../aborts/abort.store';
import { TestPools } from '../rounds/test-pools.fixture';
import { PoolStore } from '../pools';
import { WeightStore, type BeginSyncArgs } from './weight.store';

const test = new TestPools();
const { redis, runner, rounds, requests, leases, waiters, servers, pools } = test;
const weights = new WeightStore(runner);
const aborts = new AbortStore(runner);
let pool: string;

beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
  await server('s1');
  await server('s2');
});
afterAll(() => test.close());

const server = (serverId: string, weightVersion = 1, probe = false) =>
  servers.register(pool, {
    serverId,
    endpoint: 'http://e',
    dialect: 'vllm',
    probe,
    instanceId: 'i',
    maxInflight: 8,
    weight: 1,
    weightVersion,
  });
const begin = (more: Partial<BeginSyncArgs> = {}) =>
  weights.begin(pool, { syncId: 'sync', version: 2, mode: 'abort', deadlineMs: 60_000, ...more });
const end = (outcome: 'committed' | 'rolled-back', more: { syncId?: string; trainerEpoch?: Epoch } = {}) =>
  weights.end(pool, { syncId: 'sync', outcome, reason: 'asked', ...more });
const claim = (more: { waitMs?: number; replyTo?: string } = {}) =>
  requests.claim(pool, { claimId: test.unique('c'), ...test.holder, max: 8, ...more });
async function acquire(more: { requestId?: string; waitMs?: number; replyTo?: string } = {}) {
  const acquireId = test.unique('q');
  const { results } = await leases.acquire(pool, [{ acquireId, requestId: 'free', ...test.holder, ...more }]);
  return { acquireId, result: results[0]! };
}
const stop = (fenceAfterMs = 60_000) => weights.stop(pool, { syncId: 'sync', fenceAfterMs });
const release = (acquireId: string) => leases.release(pool, [{ acquireId }]);
const states = () => test.states();

/** Opens a round with one group, of weight version 1. */
const submit = (samples: number) =>
  test.open({ policy: { name: 'resume', overProvision: 1 }, neededGroups: 1, samples });
/** Claims all requests, and acquires a lease for each. */
async function run() {
  const claims = await test.claim();
  const leases: string[] = [];
  for (const { requestId } of claims) leases.push((await acquire({ requestId })).acquireId);
  return { claims, leases };
}

/** State of each server, and whether it has confirmed the new version. */
async function shown() {
  const { servers } = await weights.status(pool, { cursor: '0' });
  return Object.fromEntries(servers.map(({ serverId, state, confirmed }) => [serverId, [state, confirmed]]));
}

describe('a change of weights', () => {
  it('parks claims and acquires, and grants them when it is over', async () => {
    await submit(1);
    expect(await begin()).toMatchObject({
      state: 'begun',
      fromVersion: 1,
      running: 0,
      servers: 2,
      confirmedServers: 0,
    });
    await expect(claim()).rejects.toMatchObject({ code: 'POOL_PAUSED', retryable: true, retryAfterMs: 250 });
    expect(await claim({ waitMs: 20_000, replyTo: 'inbox' })).toMatchObject({ parked: true });
    expect((await acquire()).result).toEqual({ error: 'POOL_PAUSED', reason: 'weights-changing' });
    expect((await acquire({ waitMs: 20_000, replyTo: 'inbox' })).result).toEqual({ parked: true });
    expect((await waiters.expire(pool)).answers).toEqual([]);
    expect((await requests.expireClaims(pool)).replyTo).toEqual([]);
    expect((await requests.grantClaims(pool)).grants).toEqual([]);
    await server('s1', 2);
    expect(await end('committed')).toMatchObject({ state: 'committed', confirmedServers: 1, reason: 'asked' });
    expect((await requests.grantClaims(pool)).grants).toMatchObject([{ claims: [{ weightVersion: 2 }] }]);
    expect((await waiters.grant(pool)).answers).toMatchObject([{ serverId: 's1', replyTo: 'inbox' }]);
  });

  it('answers claims and acquires at their own deadline, with the reason', async () => {
    await submit(1);
    await begin();
    expect(await claim({ waitMs: 1, replyTo: 'inbox' })).toMatchObject({ parked: true });
    expect((await acquire({ waitMs: 1, replyTo: 'inbox' })).result).toEqual({ parked: true });
    await expect
      .poll(() => requests.expireClaims(pool))
      .toEqual({ replyTo: ['inbox'], paused: 'weights-changing', more: false });
    await expect
      .poll(async () => (await waiters.expire(pool)).answers)
      .toMatchObject([{ replyTo: 'inbox', error: 'POOL_PAUSED' }]);
    await end('rolled-back');
    await run();
    expect(await claim({ waitMs: 1, replyTo: 'inbox' })).toMatchObject({ parked: true });
    await expect.poll(() => requests.expireClaims(pool)).toEqual({ replyTo: ['inbox'], more: false });
  });

  it('stops requests with their tokens, repeatedly until confirmed, and runs them with the new version', async () => {
    await submit(2);
    const { claims, leases } = await run();
    const free = await acquire();
    expect(await begin()).toMatchObject({ running: 3 });
    await expect(end('committed')).rejects.toMatchObject({ code: 'WEIGHTS_NOT_QUIESCED' });
    for (const repeat of [1, 2]) {
      const page = await stop();
      expect(page.aborts.map(({ requestId }) => requestId).sort(), `repeat ${repeat}`).toEqual([
        'job/g0/0',
        'job/g0/1',
      ]);
      expect(page.leases).toMatchObject([{ requestId: 'free' }]);
    }
    expect(await states()).toMatchObject({ cutting: 2, running: 0 });
    const { aborts: told, leases: toldLeases, fences } = await stop(-1);
    expect([told, toldLeases]).toEqual([[], []]);
    expect(fences.map(({ serverId }) => serverId).sort()).toEqual(['s1', 's1', 's2']);
    // One attempt confirms, and one has just finished. A failure of a stopped attempt does not count.
    const [first, second] = claims;
    const failure = { countsAsFailure: true, retryable: false };
    expect(await test.fail(first!, 3, failure)).toMatchObject({ state: 'pending', roundCompleted: false });
    await test.complete(second!, 4);
    for (const acquireId of [...leases, free.acquireId]) await release(acquireId);
    expect((await weights.status(pool)).sync).toMatchObject({ running: 0 });
    expect((await stop()).aborts).toEqual([]);
    await server('s2', 2);
    await end('committed');
    const [again] = await test.claim();
    expect(again).toMatchObject({
      requestId: 'job/g0/0',
      attempt: expect.stringMatching(/^2-/) as string,
      weightVersion: 2,
      segments: [{ tokenCount: 3 }],
    });
    expect((await acquire()).result).toMatchObject({ serverId: 's2' });
    expect((await stop()).aborts).toEqual([]);
  });

  it('loses against an abort', async () => {
    await submit(2);
    const { claims } = await run();
    await begin();
    await stop();
    await aborts.begin(pool, { abortId: 'a', selector: { job: 'job' }, reason: 'test', keptMs: 60_000 });
    await aborts.select(pool, { abortId: 'a' });
    for (const one of claims) {
      expect(await test.fail(one, 1)).toMatchObject({ state: 'dropped' });
    }
    expect(await states()).toMatchObject({ dropped: 2, cutting: 0, pending: 0 });
  });

  it('marks the tokens of requests that continue during the change', async () => {
    await submit(3);
    const { claims } = await run();
    await test.complete(claims[0]!, 3);
    await begin({ mode: 'keep' });
    await test.save(claims[1]!, 2);
    await test.fail(claims[1]!);
    expect(await end('committed')).toMatchObject({ state: 'committed', running: 3 });
    await test.complete(claims[2]!, 5);
    const [again] = await test.claim();
    expect(again!.segments).toMatchObject([
      { tokenCount: 2, weightVersion: 1, toWeightVersion: 2, mixedWeightVersion: 2 },
    ]);
    await test.complete(again!, 4);
    const { groups } = await rounds.results(pool, { job: 'job', roundId: 'r1', limit: 10 });
    const versions = groups[0]!.samples.map(({ segments }) =>
      segments.map(({ weightVersion, toWeightVersion }) => [weightVersion, toWeightVersion ?? null]),
    );
    expect(versions).toEqual([
      [[1, null]],
      [
        [1, 2],
        [2, null],
      ],
      [[1, 2]],
    ]);
  });

  it('quarantines servers that missed it, or that have a version that was rolled back', async () => {
    const { epoch } = await server('s1');
    await begin();
    await server('s2', 2);
    expect(await shown()).toEqual({ s1: ['ready', false], s2: ['ready', true] });
    await end('committed');
    expect(await shown()).toEqual({ s1: ['quarantined', false], s2: ['ready', true] });
    expect((await acquire()).result).toMatchObject({ serverId: 's2' });
    const heard = await servers.heartbeat(pool, { serverId: 's1', epoch });
    expect(heard).toMatchObject({ states: { s1: 'quarantined' }, requiredWeightVersion: 2 });
    await servers.heartbeat(pool, { serverId: 's1', epoch, weightVersion: 2 });
    expect((await acquire()).result).toMatchObject({ serverId: 's1' });

    await begin({ syncId: 'next', version: 3, mode: 'keep' });
    await server('s1', 3);
    await end('rolled-back', { syncId: 'next' });
    expect(await shown()).toEqual({ s1: ['quarantined', false], s2: ['ready', true] });
    expect(await weights.status(pool)).toMatchObject({ version: 2 });
  });

  it('counts no failures while engines pause with their requests, because the requests look stalled', async () => {
    await submit(1);
    const [stalled] = await test.claim();
    const failure = { countsAsFailure: true, retryable: false };
    await begin({ mode: 'keep' });
    expect(await test.fail(stalled!, 2, failure)).toMatchObject({ state: 'pending' });
    await end('committed');
    const [again] = await test.claim();
    expect(again).toMatchObject({ attempt: expect.stringMatching(/^2-/) as string, segments: [{ tokenCount: 2 }] });
    expect(await test.fail(again!, 1, failure)).toMatchObject({ state: 'failed' });
  });

  it('restores the required version when it is rolled back: none, if servers had several versions', async () => {
    await begin();
    await server('s2', 2);
    await end('rolled-back');
    expect(await shown(), 'all had one version').toEqual({ s1: ['ready', true], s2: ['quarantined', false] });

    await test.fresh();
    ({ pool } = test);
    await server('s1', 1);
    await server('s2', 2);
    await begin({ version: 3 });
    await server('s2', 3);
    await end('rolled-back');
    expect(await shown()).toEqual({ s1: ['ready', true], s2: ['ready', true] });

    await test.fresh();
    ({ pool } = test);
    await server('s1', 1);
    await server('s2', 2);
    await new PoolStore(runner).configure(pool, { requiredWeightVersion: 1 });
    await begin({ version: 3 });
    await server('s1', 3);
    await end('rolled-back');
    expect(await shown()).toEqual({ s1: ['quarantined', false], s2: ['quarantined', false] });
  });

  it('is in the settings in force from its commit on, and makes no version that an operator would name', async () => {
    const pools = new PoolStore(runner);
    await begin();
    await server('s1', 2);
    await end('committed');
    const first = await pools.history(pool);
    expect(first).toMatchObject({ weightVersion: 2, versions: [{ settings: { requiredWeightVersion: 2 } }] });
    await pools.configure(pool, { maxSessions: 7 });
    const { version } = await pools.settings(pool);
    await begin({ syncId: 'next', version: 3 });
    await server('s1', 3);
    await end('committed', { syncId: 'next' });
    expect(await pools.settings(pool)).toMatchObject({ version, settings: { requiredWeightVersion: 3 } });
    const inForce = { version, settings: { requiredWeightVersion: 3, maxSessions: 7 } };
    expect((await pools.history(pool)).versions).toMatchObject([inForce, first.versions[0]]);
    await pools.configure(pool, { maxSessions: 8 }, [], version);
    const { versions, weightVersion } = await pools.history(pool);
    expect(weightVersion).toBe(3);
    expect(versions).toMatchObject([
      { settings: { requiredWeightVersion: 3, maxSessions: 8 } },
      { version, settings: { requiredWeightVersion: 2, maxSessions: 7 } },
      first.versions[0],
    ]);
    expect(versions[0]!.version).toBeGreaterThan(version);
    const times = versions.map(({ sinceMs }) => sinceMs);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  it('is in the history when a roll-back is the first change of the settings, which have no time yet', async () => {
    await server('s2', 2);
    await begin({ version: 3 });
    await end('rolled-back');
    expect((await new PoolStore(runner).history(pool)).versions).toEqual([
      { version: 0, sinceMs: expect.any(Number), settings: {} },
    ]);
  });

  it('is rolled back at its deadline, and then cannot be committed', async () => {
    await begin({ deadlineMs: 60_000 });
    expect(await weights.rollbackOverdue(pool, 'sync')).toMatchObject({ state: 'begun' });
    await redis.hset(test.key('weights:sync'), 'deadlineAtMs', 1);
    expect(await weights.rollbackOverdue(pool, 'sync')).toMatchObject({ state: 'rolled-back', reason: 'deadline' });
    await expect(end('committed')).rejects.toMatchObject({ code: 'WEIGHT_SYNC_ENDED', retryable: false });
    expect(await begin()).toMatchObject({ state: 'rolled-back' });
  });

  it('makes the weights unknown of servers that were not reported between its start and its deadline', async () => {
    const { epoch } = await server('s1');
    await begin();
    // The trainer reports servers that it did not load, or loaded again, but not a server that failed meanwhile.
    await servers.update(pool, { serverId: 's2', weightVersion: 1 });
    await redis.hset(test.key('weights:sync'), 'deadlineAtMs', 1);
    await weights.rollbackOverdue(pool, 'sync');
    expect((await servers.list(pool, { serverId: 's1' })).servers).toMatchObject([{ weightsUnknown: true }]);
    expect(await shown()).toEqual({ s1: ['quarantined', false], s2: ['ready', true] });
    expect((await acquire()).result).toMatchObject({ serverId: 's2' });
    await servers.heartbeat(pool, { serverId: 's1', epoch });
    await servers.update(pool, { serverId: 's1', epoch, report: { startedAtSeconds: 5 } });
    await servers.update(pool, { serverId: 's1', epoch, report: { weightVersion: -1 } });
    await servers.remove(pool, { serverId: 's2' });
    expect((await acquire()).result).toEqual({ error: 'NO_SERVER_AVAILABLE', reason: 'weights-unknown' });
    await servers.heartbeat(pool, { serverId: 's1', epoch, weightVersion: 1 });
    expect((await acquire()).result).toMatchObject({ serverId: 's1' });
  });

  it.each(['wait', 'keep'] as const)('stops running requests at its deadline before it ends: mode %s', async (mode) => {
    await submit(1);
    const [running] = (await run()).claims;
    await begin({ mode });
    expect(await stop()).toMatchObject({ aborts: [], leases: [] });
    await redis.hset(test.key('weights:sync'), 'deadlineAtMs', Date.now() - 10);
    expect(await weights.rollbackOverdue(pool, 'sync')).toMatchObject({ state: 'begun', running: 1 });
    expect((await stop()).aborts).toMatchObject([{ requestId: running!.requestId }]);
  });

  it('gives no leases to an unreported server without cache salts before its prefix cache is reset', async () => {
    const { epoch } = await server('s1', 1, true);
    const readStatus = async () => (await servers.list(pool, { serverId: 's1' })).servers[0]!;
    const capabilities = { prefixCacheReset: true };
    await servers.update(pool, { serverId: 's1', epoch, isDescribed: true, capabilities });
    await begin({ version: 1, mode: 'keep' });
    expect(await readStatus()).not.toHaveProperty('pendingWeightVersion');
    await end('rolled-back');
    expect(await readStatus()).toMatchObject({ state: 'quarantined', pendingWeightVersion: 1 });
    const { beganMs, needed } = await weights.staleCache(pool, { serverId: 's1', weightVersion: 1 });
    expect(needed).toBe(true);
    await begin({ syncId: 'next', version: 1 });
    await servers.update(pool, { serverId: 's1', epoch, emptiedSinceMs: beganMs });
    await end('committed', { syncId: 'next' });
    expect(await readStatus(), 'reset before the next load').toMatchObject({ pendingWeightVersion: 1 });
    const again = await weights.staleCache(pool, { serverId: 's1', weightVersion: 1 });
    await servers.update(pool, { serverId: 's1', epoch, emptiedSinceMs: again.beganMs });
    expect(await readStatus()).toMatchObject({ state: 'ready', weightVersion: 1 });
  });

  it('gives each lease a salt that no other weights of its server had', async () => {
    const salted = { capabilities: { cacheSalt: true } };
    for (const serverId of ['s1', 's2']) await servers.update(pool, { serverId, ...salted });
    const salt = async () => {
      const acquireId = test.unique('q');
      const reply = await leases.acquire(pool, [{ acquireId, requestId: 'free', ...test.holder, boundServerId: 's1' }]);
      await release(acquireId);
      return reply.servers.s1!.cacheSalt;
    };
    const salts = [await salt()];
    expect(await salt()).toBe(salts[0]);
    for (const [index, outcome] of (['committed', 'rolled-back', 'committed'] as const).entries()) {
      // The version stays the same, and no server is reported.
      await begin({ syncId: `sync-${index}`, version: 1, mode: 'keep' });
      await end(outcome, { syncId: `sync-${index}` });
      salts.push(await salt());
    }
    await servers.update(pool, { serverId: 's1', weightVersion: 1 });
    salts.push(await salt());
    expect(salts.every((text) => /^\d{13}$/.test(text!))).toBe(true);
    expect(new Set(salts).size).toBe(salts.length);
    await servers.update(pool, { serverId: 's1', capabilities: {} });
    expect(await salt()).toBeUndefined();
  });

  it('is safe to repeat, and refuses another, an older or a foreign change', async () => {
    const refused = (call: Promise<unknown>, code: string, field?: string) =>
      expect(call).rejects.toMatchObject({ code, ...(field === undefined ? {} : { field }) });
    await refused(begin({ version: 0 }), 'WEIGHT_VERSION_STALE', 'version');
    await refused(begin({ job: 'job', trainerEpoch: 'e1' }), 'JOB_NOT_FOUND');
    const { trainerEpoch } = await submit(1);
    await refused(begin({ job: 'job', trainerEpoch: trainerEpoch + 1 }), 'FENCED', 'trainerEpoch');
    const begun = await begin({ job: 'job', trainerEpoch });
    expect(await begin({ job: 'job', trainerEpoch, deadlineMs: 1_000 })).toEqual(begun);
    const later = await begin({ job: 'job', trainerEpoch, deadlineMs: 600_000 });
    expect(later.deadlineAtMs).toBeGreaterThan(begun.deadlineAtMs);
    await refused(begin({ mode: 'keep' }), 'VALIDATION_FAILED', 'syncId');
    await refused(begin({ syncId: 'other' }), 'WEIGHT_SYNC_CONFLICT');
    await refused(end('committed', { syncId: 'other' }), 'WEIGHT_SYNC_NOT_FOUND');
    await refused(weights.status(pool, { syncId: 'other' }), 'WEIGHT_SYNC_NOT_FOUND');
    const { trainerEpoch: newer } = await rounds.takeover(pool, { job: 'job', takeoverId: 't' });
    await refused(end('committed', { trainerEpoch }), 'FENCED');
    await refused(end('committed'), 'FENCED');
    const committed = await end('committed', { trainerEpoch: newer });
    expect(await end('committed', { trainerEpoch: newer })).toEqual(committed);
    expect(await begin({ job: 'job', trainerEpoch: newer })).toEqual(committed);
    await refused(begin({ job: 'job', trainerEpoch }), 'FENCED');
    await refused(end('rolled-back'), 'WEIGHT_SYNC_ENDED');
    await refused(begin({ syncId: 'older', version: 1 }), 'WEIGHT_VERSION_STALE');
  });

  it('lets rounds open with the version of the pool, but not with a version that no engine has', async () => {
    const policy = { name: 'resume', overProvision: 1 } as const;
    const plan = { step: 1, kind: 'short' as const, neededGroups: 1, newGroups: 1, takeGroups: 0 };
    const terms = { policy, orphanAfterMs: 600_000, ...roundTerms(policy, plan, {}) };
    let jobs = 0;
    const open = async (weightVersion?: number) => {
      const job = `job-${jobs++}`;
      await rounds.open(pool, { job, roundId: 'r', planId: 'p', ...plan, ...terms, weightVersion });
      return (await rounds.status(pool, { job })).weightVersion;
    };
    const refused = async (weightVersion: number, poolWeightVersion: number) =>
      expect(open(weightVersion)).rejects.toMatchObject({
        code: 'WEIGHT_VERSION_MISMATCH',
        retryable: false,
        field: 'weightVersion',
        details: { weightVersion, poolWeightVersion },
      });
    // Before the first commit, rounds use versions that servers report, by default the newest.
    expect(await open()).toBe(1);
    await server('s2', 2);
    expect([await open(), await open(1), await open(2)]).toEqual([2, 1, 2]);
    await refused(3, 2);
    // A version that is not committed yet is refused.
    await begin({ version: 3 });
    await refused(3, 2);
    await server('s1', 3);
    await end('committed');
    expect([await open(), await open(3)]).toEqual([3, 3]);
    await refused(2, 3);
    await refused(4, 3);
  });

  it('nests with a pause by hand: the pool continues when both are over', async () => {
    const parked = () => acquire({ waitMs: 1_000, replyTo: 'inbox' });
    await begin();
    expect(await pools.pause(pool, { paused: true })).toMatchObject({ changed: true });
    await end('rolled-back');
    expect((await parked()).result).toEqual({ parked: true });
    expect((await waiters.grant(pool)).answers).toEqual([]);
    await expect(claim()).rejects.toMatchObject({ code: 'POOL_PAUSED', retryable: true, retryAfterMs: 250 });
    await begin({ syncId: 'second' });
    expect((await pools.pause(pool, { paused: false })).answers).toEqual([]);
    expect((await waiters.grant(pool)).answers).toEqual([]);
    await end('rolled-back', { syncId: 'second' });
    expect((await waiters.grant(pool)).answers).toHaveLength(1);
  });
});
