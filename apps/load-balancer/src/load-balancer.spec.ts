import { setTimeout as delay } from 'node:timers/promises';
import type { OperationName } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../../../libs/platform/src/failpoint';
import { TestEngine } from './engine.fixture';
import { openLoadBalancers, type LoadBalancers } from './load-balancer.fixture';

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(2, { SERVER_FAILED_AFTER_MS: '3000' });
});
afterAll(() => lb.close());
beforeEach(() => lb.nextPool());

describe('two replicas of the load-balancer', () => {
  it('use all servers alike for concurrent acquires, and balance their counts', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await lb.server(id);
    const w = await lb.worker();
    const grants = await Promise.all(Array.from({ length: 200 }, () => lb.acquire(w)));
    expect((await lb.status()).perServer.map(({ inflight }) => inflight)).toEqual([50, 50, 50, 50]);
    // The lease that was granted first. With two replicas, chance decides which call got it.
    const first = grants.toSorted((a, b) => Number.parseInt(a.leaseId, 10) - Number.parseInt(b.leaseId, 10))[0];
    expect(first).toMatchObject({
      endpoint: lb.engine.url,
      dialect: 'vllm',
      weightVersion: 0,
      decision: { policy: 'least-inflight', branch: 'tie' },
    });
    const released = await Promise.all(grants.map(({ leaseId }) => lb.release(leaseId)));
    expect(released.every((reply) => reply.released)).toBe(true);
    const idle = { servers: 4, readyServers: 4, leases: 0, waiters: 0, workers: 1 };
    await expect.poll(lb.status).toMatchObject(idle);
  });

  it('grant a burst of 2,048 acquires in order, repeat the same grants, and release them', async () => {
    await lb.server('a', 2_000);
    await lb.server('b', 2_000);
    const w = await lb.worker();
    const burst = Array.from({ length: 2_048 }, (_, n) => ({ acquireId: `burst-${n}`, requestId: `job/g/${n}` }));
    const first = await lb.call('lb.acquire-many', { ...w, acquires: burst });
    expect(first.leases.map(({ acquireId }) => acquireId)).toEqual(burst.map(({ acquireId }) => acquireId));
    expect(Object.keys(first.servers).sort()).toEqual(['a', 'b']);
    expect(await lb.call('lb.acquire-many', { ...w, acquires: burst })).toEqual(first);
    const digest = first.leases.reduce(
      (sum, lease) => sum + ('leaseId' in lease ? Number.parseInt(lease.leaseId, 10) : 0),
      0,
    );
    const beat = await lb.call('worker.heartbeat', { ...w, leaseCount: 0, leaseDigest: 0, attemptCount: 0 });
    expect(beat).toMatchObject({ leaseCount: 2_048, leaseDigest: digest });
    const releases = burst.map(({ acquireId }) => ({ acquireId, outcome: 'finished' as const }));
    const { results } = await lb.call('lb.release-many', { releases });
    expect(results.filter(({ released }) => released).length).toBe(2_048);
    expect((await lb.status()).leases).toBe(0);
  });

  it('answer each waiting acquire exactly once, whichever replica got the release', async () => {
    await lb.server('a', 4);
    const w = await lb.worker();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const lease = await lb.acquire(w, { waitMs: 20_000 });
        const release = await lb.release(lease.leaseId);
        return { leaseId: lease.leaseId, branch: lease.decision.branch, released: release.released };
      }),
    );
    expect(new Set(outcomes.map(({ leaseId }) => leaseId)).size).toBe(100);
    expect(outcomes.every(({ released }) => released)).toBe(true);
    expect(outcomes.some(({ branch }) => branch === 'waited')).toBe(true);
    expect(await lb.status()).toMatchObject({ leases: 0, waiters: 0 });
  });

  it('move a lease to another server, once, whichever replica is asked', async () => {
    await lb.server('a', 1);
    const w = await lb.worker();
    const lease = await lb.acquire(w);
    const waiting = lb.acquire(w, { waitMs: 20_000, excludeServers: ['b'] });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    await lb.server('b', 1);
    const move = { transferId: 'move-1', leaseId: lease.leaseId, ...w, targetServerId: 'b', reason: 'drain' };
    const moves = await Promise.all(Array.from({ length: 4 }, () => lb.call('lb.transfer', move)));
    expect(moves[0]).toMatchObject({
      leaseId: lease.leaseId,
      serverId: 'b',
      endpoint: lb.engine.url,
      decision: { branch: 'transferred', inflight: 1 },
    });
    expect(moves.slice(1)).toEqual([moves[0], moves[0], moves[0]]);
    expect(await waiting).toMatchObject({ serverId: 'a' });
    const toNowhere = { ...move, transferId: 'move-2', targetServerId: 'c' };
    await expect(lb.call('lb.transfer', toNowhere)).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    const nobody = lb.call('lb.transfer', { ...toNowhere, leaseId: 'nonsense' });
    await expect(nobody).rejects.toMatchObject({ code: 'LEASE_NOT_FOUND' });
    const release = { leaseId: lease.leaseId, outcome: 'finished' as const };
    expect(await lb.call('lb.release', release)).toMatchObject({ released: true });
    expect(await lb.call('lb.release', release)).toMatchObject({ released: false });
    expect((await lb.status()).perServer.map(({ inflight }) => inflight).sort()).toEqual([0, 1]);
  });

  it('answer NO_SERVER_AVAILABLE at once, or after waitMs', async () => {
    const w = await lb.worker();
    await expect(lb.acquire(w)).rejects.toMatchObject({
      code: 'NO_SERVER_AVAILABLE',
      retryable: true,
      details: { reason: 'no-servers' },
    });
    const startedAt = performance.now();
    await expect(lb.acquire(w, { waitMs: 300 })).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(290);
  });

  it('grant a waiter the moment a server registers', async () => {
    const w = await lb.worker();
    const waiting = lb.acquire(w, { waitMs: 20_000 });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    await lb.server('a');
    expect(await waiting).toMatchObject({ serverId: 'a', decision: { branch: 'waited' } });
  });

  it('measure how long an acquire waits for its grant, at the replica that grants it', async () => {
    const of = async (suffix: string) => {
      const pattern = new RegExp(`broomwagon_acquire_wait_seconds_${suffix}{[^}]*pool="${lb.pool}"} (\\S+)`);
      return (await lb.metrics()).reduce((sum, page) => sum + Number(pattern.exec(page)?.[1] ?? 0), 0);
    };
    const before = { count: await of('count'), seconds: await of('sum') };
    const w = await lb.worker();
    const waiting = lb.acquire(w, { waitMs: 20_000 });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    const waitsSinceMs = performance.now();
    await delay(50);
    const waitedMs = performance.now() - waitsSinceMs;
    await lb.server('a');
    await waiting;
    await lb.acquire(w);
    await expect.poll(() => of('count')).toBe(before.count + 2);
    // Redis counts whole milliseconds.
    expect(((await of('sum')) - before.seconds) * 1_000).toBeGreaterThan(waitedMs - 2);
  });

  it('return the leases of a dead worker within its time to live, and fence its later calls', async () => {
    await lb.server('a');
    const dead = await lb.worker('dead', 2_000);
    await lb.worker('alive1');
    await lb.worker('alive2');
    const lease = await lb.acquire(dead);
    await expect.poll(async () => (await lb.status()).leases).toBe(0);
    const late = await lb.release(lease.leaseId);
    expect(late.released).toBe(false);
    await expect(lb.acquire(dead)).rejects.toMatchObject({ code: 'FENCED' });
    const beat = { ...dead, leaseCount: 1, leaseDigest: 1, attemptCount: 0 };
    await expect(lb.call('worker.heartbeat', beat)).rejects.toMatchObject({ code: 'FENCED' });
  });

  it('return at once the leases of a worker that deregisters or registers again', async () => {
    await lb.server('a');
    const first = await lb.worker('w');
    await lb.acquire(first);
    const second = await lb.worker('w');
    await expect.poll(async () => (await lb.status()).leases).toBe(0);
    await lb.acquire(second);
    expect(await lb.call('worker.deregister', second)).toEqual({ deregistered: true });
    await expect.poll(async () => (await lb.status()).leases).toBe(0);
  });

  it('take a silent engine out of use, expire its leases, and bring it back with a new epoch', async () => {
    const sick = await TestEngine.start();
    await lb.server('well-1');
    await lb.server('well-2');
    const { epoch } = await lb.server('sick', 100, { endpoint: sick.url });
    const w = await lb.worker();
    const leases = await Promise.all([lb.acquire(w), lb.acquire(w), lb.acquire(w)]);
    const readState = async () => (await lb.status()).perServer.find(({ serverId }) => serverId === 'sick')!;
    // A refusal is an answer: only silence, 5xx and a missing route count as failures.
    sick.status = 401;
    const probes = sick.probes;
    await expect.poll(() => sick.probes).toBeGreaterThan(probes + 8);
    await expect.poll(async () => (await readState()).state).toBe('ready');
    sick.status = 503;
    await expect.poll(async () => (await readState()).state).not.toBe('ready');
    await expect.poll(async () => (await readState()).state).toBe('failed');
    await expect.poll(async () => (await lb.status()).leases).toBe(2);
    sick.status = 200;
    await expect.poll(async () => (await readState()).state).toBe('ready');
    expect((await readState()).epoch).not.toBe(epoch);
    const onSick = leases.find((lease) => lease.serverId === 'sick')!;
    const late = await lb.call('lb.release', { leaseId: onSick.leaseId, outcome: 'failed' });
    expect(late.released).toBe(false);
    sick.stop();
  });

  it('keep servers pending that never answered, however often they register, except a server without probes', async () => {
    const dead = await TestEngine.start();
    const endpoint = dead.url;
    dead.stop();
    const ids = ['1', '2', '3', '4', '5'];
    const register = () => Promise.all(ids.map((id) => lb.server(id, 100, { endpoint })));
    const first = await register();
    expect(first.map(({ state }) => state)).toEqual(ids.map(() => 'pending'));
    expect(await lb.status()).toMatchObject({ servers: 5, readyServers: 0 });
    expect(await register()).toEqual(first);
    await expect(lb.acquire(await lb.worker())).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
    expect(await lb.server('alive')).toMatchObject({ state: 'ready' });
    expect(await lb.server('trainer-only', 100, { endpoint, probe: false })).toMatchObject({
      state: 'ready',
    });
    // Both servers stay ready for more rounds of probes than make a silent server suspect.
    const before = lb.engine.probes;
    await expect.poll(() => lb.engine.probes).toBeGreaterThan(before + 12);
    const { readyServers, perServer } = await lb.status();
    expect(readyServers).toBe(2);
    expect(
      perServer
        .filter(({ state }) => state === 'ready')
        .map(({ serverId }) => serverId)
        .sort(),
    ).toEqual(['alive', 'trainer-only']);
    expect((await lb.list()).get('trainer-only')).toMatchObject({ probe: false });
  });

  it('treat an engine that answers late as slow, not as dead, and keep its leases', async () => {
    const slow = await TestEngine.start();
    for (const id of ['well-1', 'well-2']) await lb.server(id);
    const { epoch } = await lb.server('slow', 100, { endpoint: slow.url });
    const w = await lb.worker();
    const leases = await Promise.all([lb.acquire(w), lb.acquire(w), lb.acquire(w)]);
    // Each answer comes long after its round, and all answers together take longer than a server may be silent.
    slow.delayMs = 500;
    const { probes } = slow;
    await expect.poll(() => slow.probes).toBeGreaterThan(probes + 8);
    expect((await lb.list()).get('slow')?.epoch).toBe(epoch);
    const released = await Promise.all(leases.map(({ leaseId }) => lb.release(leaseId)));
    expect(released.every((reply) => reply.released)).toBe(true);
    slow.stop();
  });

  it('keep the only server in use though its probes fail', async () => {
    const silent = await TestEngine.start();
    await lb.server('a', 100, { endpoint: silent.url });
    const w = await lb.worker();
    silent.stop();
    await expect.poll(async () => (await lb.status()).perServer[0]?.state).toBe('suspect');
    expect(await lb.acquire(w)).toMatchObject({ serverId: 'a' });
  });

  it('give a call that lost its reply the same lease when it is repeated', async () => {
    await lb.server('a');
    const w = await lb.worker();
    setFailpoints('load-balancer.acquire.before-reply=throw@1,load-balancer.release.before-reply=throw@1');
    await expect(lb.acquire(w, { acquireId: 'lost' })).rejects.toMatchObject({ code: 'INTERNAL', retryable: true });
    const lease = await lb.acquire(w, { acquireId: 'lost' });
    expect(lease.decision).toMatchObject({ branch: 'repeated', inflight: 1 });
    const release = { leaseId: lease.leaseId, outcome: 'finished' as const };
    await expect(lb.call('lb.release', release)).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await lb.call('lb.release', release)).toEqual({ released: false, reason: 'already-released' });
    expect((await lb.status()).leases).toBe(0);
    setFailpoints('');
  });

  it('refuse bad input and change nothing', async () => {
    await lb.server('a');
    const w = await lb.worker();
    const before = await lb.status();
    const bad: [OperationName, object][] = [
      ['lb.acquire', { acquireId: 'has a\nline', requestId: 'r', ...w }],
      ['lb.acquire', { acquireId: 'x', requestId: 'r', ...w, waitMs: 30_001 }],
      ['lb.acquire', { acquireId: 'x', requestId: 'r', ...w, surprise: 1 }],
      ['lb.acquire', { acquireId: 'x', requestId: 'r', ...w, weightVersion: 2 ** 53 }],
      ['lb.acquire-many', { ...w, acquires: [{ acquireId: 'x', requestId: 'r', waitMs: 5 }] }],
      ['lb.acquire-many', { ...w, acquires: [] }],
      ['lb.release', { outcome: 'finished' }],
      ['server.register', { serverId: 'b', endpoint: 'not a url', dialect: 'vllm', maxInflight: 1 }],
      ['server.register', { serverId: 'b', endpoint: lb.engine.url, dialect: 'vllm', maxInflight: 0 }],
      ['server.list', { cursor: 'x' }],
      ['worker.sync', { ...w, kind: 'leases', cursor: 'x' }],
    ];
    for (const [operation, body] of bad) {
      const call = lb.request(operation, body);
      await expect(call, `${operation} ${JSON.stringify(body)}`).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    }
    const heartbeat = lb.call('server.heartbeat', { serverId: 'nobody', epoch: 'e1' });
    await expect(heartbeat).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    expect(await lb.call('server.remove', { serverId: 'nobody' })).toEqual({ removed: false });
    expect(await lb.call('lb.release', { leaseId: 'nonsense', outcome: 'finished' })).toEqual({
      released: false,
      reason: 'unknown',
    });
    // Optional fields may be null.
    const nulls = { sessionId: null, priority: null, waitMs: null, weightVersion: null };
    const granted = await lb.request('lb.acquire', {
      acquireId: 'nulls',
      requestId: 'r',
      ...w,
      ...nulls,
    });
    expect(granted).toMatchObject({ serverId: 'a' });
    await lb.call('lb.release', { acquireId: 'nulls', leaseId: null as never, outcome: 'finished' });
    expect(await lb.status()).toEqual(before);
  });

  it('do not let one bad call fail the other calls of its batch', async () => {
    await lb.server('a');
    const w = await lb.worker();
    const good = () => lb.acquire(w).then(({ serverId }) => serverId);
    const spoilt = [{ workerEpoch: 1e21 }, { excludeServers: ['\u0007'] }].map((wrong) =>
      lb.acquire(w, wrong).catch(({ code }: { code: string }) => code),
    );
    const restricted = lb.acquire(w, { excludeServers: ['b'] }).then(({ serverId }) => serverId);
    expect(await Promise.all([...spoilt, good(), good(), restricted])).toEqual([
      'VALIDATION_FAILED',
      'VALIDATION_FAILED',
      'a',
      'a',
      'a',
    ]);
  });

  it('are ready when Redis answers, and show their metrics', async () => {
    const base = `http://127.0.0.1:${lb.replicas[0]!.httpPort}`;
    expect(await (await fetch(`${base}/readyz`)).json()).toMatchObject({
      status: 'ok',
      info: { redis: { status: 'up' } },
    });
    const [page] = await lb.metrics();
    for (const name of ['leases', 'waiters', 'acquires_total', 'leases_reaped_total']) {
      expect(page).toContain(`broomwagon_${name}`);
    }
    expect(page).toMatch(
      /^broomwagon_redis_call_seconds_count\{app="load-balancer",transition="leases\/acquire"\} \d/m,
    );
    expect(page).toMatch(
      /^broomwagon_build_info\{version="\d+\.\d+\.\d+",commit="(unknown|[\da-f]{7,40}(-dirty)?)",app="load-balancer"\} 1$/m,
    );
    expect(page).toMatch(/^broomwagon_schema_version\{app="load-balancer"\} 1$/m);
  });
});
