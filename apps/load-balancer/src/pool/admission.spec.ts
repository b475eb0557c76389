import { LIMITS, type OperationName } from '@broomwagon/contracts';
import { UNSERVED_CODE } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

const MAX_WAITERS = 20;

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(2, { ENGINE_ALLOW_LIST: '127.0.0.1,*.engines.svc', MAX_WAITERS: String(MAX_WAITERS) });
});
afterAll(() => lb.close());
beforeEach(() => lb.nextPool());

describe('admission by two replicas', () => {
  it('parks acquires while the pool is paused, refuses acquires that do not wait, and grants with the resume', async () => {
    await lb.server('a');
    const w = await lb.worker();
    expect(await lb.call('pool.pause', {})).toEqual({ paused: true, changed: true });
    expect(await lb.call('lb.status', {})).toMatchObject({ paused: true });
    await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'POOL_PAUSED', retryable: true });
    // An acquire that may wait is answered when its wait is over.
    await expect(lb.acquire(w, { waitMs: 1 })).rejects.toMatchObject({ code: 'POOL_PAUSED', retryAfterMs: 250 });
    const waiting = lb.acquire(w, { waitMs: LIMITS.waitMs });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    expect(await lb.call('pool.resume', {})).toEqual({ paused: false, changed: true });
    expect(await lb.call('lb.status', {})).toMatchObject({ paused: false });
    expect(await waiting).toMatchObject({ serverId: 'a', decision: { branch: 'waited' } });
  });

  it('answers an acquire once that is cancelled or released while it waits', async () => {
    const w = await lb.worker();
    // The rejection is awaited from the start: it may come before the reply of the call that causes it.
    const waiting = expect(lb.acquire(w, { acquireId: 'gone', waitMs: LIMITS.waitMs })).rejects.toMatchObject({
      code: 'RELEASED',
    });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    expect(await lb.call('lb.cancel', { ...w, acquireId: 'gone' })).toEqual({
      cancelled: true,
      reason: 'cancelled',
    });
    await waiting;
    const other = expect(lb.acquire(w, { acquireId: 'other', waitMs: LIMITS.waitMs })).rejects.toMatchObject({
      code: 'RELEASED',
    });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    await lb.call('lb.release', { acquireId: 'other', outcome: 'aborted' });
    await other;
    await lb.server('a');
    const { leaseId } = await lb.acquire(w, { acquireId: 'held' });
    expect(await lb.call('lb.cancel', { ...w, acquireId: 'held' })).toEqual({
      cancelled: false,
      reason: 'granted',
      leaseId,
    });
  });

  it('answers WAIT_TIMEOUT when nothing became free, QUEUE_FULL when too many wait, WORKER_NOT_FOUND in another pool', async () => {
    await lb.server('a', 1);
    const w = await lb.worker();
    await lb.acquire(w);
    const inVain = { code: 'WAIT_TIMEOUT', retryable: false, details: { reason: 'servers-full' } };
    // The server is suspect for a moment if a busy machine has delayed its probes.
    await expect.poll(() => lb.acquire(w, { waitMs: 100 }).catch((error: unknown) => error)).toMatchObject(inVain);
    const ids = Array.from({ length: MAX_WAITERS }, (_, index) => `waiter-${index}`);
    const waiting = ids.map((acquireId) =>
      expect(lb.acquire(w, { acquireId, waitMs: LIMITS.waitMs })).rejects.toMatchObject({ code: 'RELEASED' }),
    );
    await expect.poll(async () => (await lb.status()).waiters).toBe(MAX_WAITERS);
    await expect(lb.acquire(w, { waitMs: 500 })).rejects.toMatchObject({ code: 'QUEUE_FULL' });
    for (const acquireId of ids) await lb.call('lb.cancel', { ...w, acquireId });
    await Promise.all(waiting);
    lb.nextPool();
    await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND', field: 'workerId' });
    expect(await lb.status()).toMatchObject({ servers: 0, leases: 0 });
    const nobody = lb.client.call('not-served', 'lb.acquire', { acquireId: 'x', requestId: 'r', ...w });
    await expect(nobody).rejects.toMatchObject({ code: UNSERVED_CODE, retryable: true });
  });

  it('keeps to the bound of the pool when it changes', async () => {
    await lb.server('a');
    await lb.server('b');
    const w = await lb.worker();
    await lb.call('pool.configure', { poolMaxInflight: 2 });
    const leases = [await lb.acquire(w), await lb.acquire(w)];
    const refusal = { code: 'SERVERS_FULL', retryable: true, details: { reason: 'pool-full' } };
    await expect(lb.acquire(w)).rejects.toMatchObject(refusal);
    const waiting = lb.acquire(w, { waitMs: LIMITS.waitMs });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    await lb.release(leases[0]!.leaseId);
    expect(await waiting).toMatchObject({ decision: { branch: 'waited' } });
    await lb.call('pool.configure', { reset: ['poolMaxInflight'] });
    await lb.acquire(w);
    expect(await lb.status()).toMatchObject({ leases: 3 });
  });

  it('grants the waiters of a slowly starting server as it grows', async () => {
    await lb.call('pool.configure', { slowStartMs: 3_000, slowStartFraction: 0 });
    const w = await lb.worker();
    const startedAt = performance.now();
    await lb.server('a', 10);
    const grants = await Promise.all(Array.from({ length: 10 }, () => lb.acquire(w, { waitMs: LIMITS.waitMs })));
    expect(grants.filter(({ decision }) => decision.branch === 'waited').length).toBeGreaterThan(5);
    expect(performance.now() - startedAt).toBeGreaterThan(2_000);
    expect((await lb.list()).get('a')).toMatchObject({ inflight: 10, capacity: 10 });
  });

  it('shows the load that engines report, and adapts limits only with adaptive concurrency', async () => {
    lb.engine.metrics = { running: 3, waiting: 4, kvUse: 0.97, preemptions: 5 };
    await lb.server('a', 12);
    const w = await lb.worker();
    for (let n = 0; n < 8; n++) await lb.acquire(w);
    await expect
      .poll(async () => (await lb.list()).get('a')?.load)
      .toMatchObject({ running: 3, waiting: 4, kvUse: 0.97, kvTokens: 16_000, preemptions: 5 });
    expect((await lb.list()).get('a')).toMatchObject({ capacity: 12, inflight: 8 });
    await lb.call('pool.configure', { adaptiveConcurrency: 1, adaptIntervalMs: 100 });
    // Each step needs a report within 200 ms of its request, which a busy machine misses again and again.
    const patience = { timeout: 55_000 };
    await expect.poll(async () => (await lb.list()).get('a')?.capacity, patience).toBe(1);
    lb.engine.metrics = { running: 0, waiting: 0, kvUse: 0.1, preemptions: 5 };
    await expect.poll(async () => (await lb.list()).get('a')?.capacity, patience).toBeGreaterThan(3);
    await expect
      .poll(async () => {
        const pages = await Promise.all(
          lb.replicas.map(async ({ httpPort }) => (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text()),
        );
        return pages.join('\n');
      })
      .toContain(`engine_drift_leases{pool="${lb.pool}",of="sum"`);
  });

  it('grants nothing on a draining server, and removes it with its last lease or at the deadline', async () => {
    await lb.server('a');
    const w = await lb.worker();
    const held = await lb.acquire(w, { sessionId: 's' });
    const drained = await lb.call('server.drain', { serverId: 'a', deadlineMs: 60_000 });
    expect(drained).toMatchObject({ serverId: 'a', state: 'draining', inflight: 1 });
    await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
    expect((await lb.release(held.leaseId)).released).toBe(true);
    await expect.poll(async () => (await lb.status()).servers).toBe(0);

    await lb.server('b');
    const late = await lb.acquire(w);
    await lb.call('server.drain', { serverId: 'b', deadlineMs: 50 });
    await expect.poll(async () => (await lb.status()).servers).toBe(0);
    // The holder learns from the lease count of its heartbeat that its lease has expired.
    const beat = { ...w, leaseCount: 1, leaseDigest: 1, attemptCount: 0 };
    await expect.poll(async () => (await lb.call('worker.heartbeat', beat)).leaseCount).toBe(0);
    expect((await lb.release(late.leaseId)).released).toBe(false);
  });

  it('cordons and quarantines a server, and ends both', async () => {
    await lb.server('a', 100, { weightVersion: 1 });
    const w = await lb.worker();
    expect(await lb.call('server.cordon', { serverId: 'a' })).toMatchObject({ state: 'cordoned' });
    const waiting = lb.acquire(w, { waitMs: LIMITS.waitMs });
    await expect.poll(async () => (await lb.status()).waiters).toBe(1);
    expect(await lb.call('server.uncordon', { serverId: 'a' })).toMatchObject({ state: 'ready' });
    expect(await waiting).toMatchObject({ serverId: 'a' });
    await lb.call('pool.configure', { requiredWeightVersion: 2 });
    expect((await lb.list()).get('a')).toMatchObject({ state: 'quarantined' });
    await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
    const updated = { serverId: 'a', weightVersion: 2, labels: { zone: 'x' } };
    expect(await lb.call('server.update', updated)).toMatchObject({ state: 'ready' });
    expect(await lb.acquire(w)).toMatchObject({ serverId: 'a', weightVersion: 2 });
    expect((await lb.list()).get('a')).toMatchObject({ labels: { zone: 'x' } });
  });

  it('refuses bad input with a typed error and changes nothing', async () => {
    await lb.server('a');
    const w = await lb.worker();
    await lb.acquire(w);
    const before = [await lb.status(), (await lb.list()).get('a')?.maxInflight];
    const ids = (count: number) => Array.from({ length: count }, (_, n) => ({ acquireId: `x${n}`, requestId: 'r' }));
    const bad: [OperationName, object, string][] = [
      ['server.update', { serverId: 'a', maxInflight: 0 }, 'VALIDATION_FAILED'],
      ['server.update', { serverId: 'a', maxInflight: -1 }, 'VALIDATION_FAILED'],
      ['server.update', { serverId: 'a', weight: Number.NaN, maxInflight: 'x' }, 'VALIDATION_FAILED'],
      ['server.update', { serverId: 'a', weight: 0 }, 'VALIDATION_FAILED'],
      ['server.update', { serverId: 'a', labels: { 'no spaces': 'x' } }, 'VALIDATION_FAILED'],
      ['server.update', { serverId: 'nobody', maxInflight: 1 }, 'SERVER_NOT_FOUND'],
      ['server.drain', { serverId: 'a', deadlineMs: -1 }, 'VALIDATION_FAILED'],
      ['server.drain', { serverId: 'nobody', deadlineMs: 1 }, 'SERVER_NOT_FOUND'],
      ['server.cordon', { serverId: 'nobody' }, 'SERVER_NOT_FOUND'],
      ['server.uncordon', { serverId: 'nobody' }, 'SERVER_NOT_FOUND'],
      [
        'server.register',
        { serverId: 'b', endpoint: 'http://10.0.0.1:8000', dialect: 'vllm', maxInflight: 1 },
        'VALIDATION_FAILED',
      ],
      [
        'server.register',
        { serverId: 'b', endpoint: 'http://127.0.0.1.evil.example', dialect: 'vllm', maxInflight: 1 },
        'VALIDATION_FAILED',
      ],
      [
        'server.register',
        { serverId: 'b', endpoint: 'ftp://127.0.0.1', dialect: 'vllm', maxInflight: 1 },
        'VALIDATION_FAILED',
      ],
      [
        'server.register',
        { serverId: 'b', endpoint: 'http://user:password@127.0.0.1:1/v1', dialect: 'vllm', maxInflight: 1 },
        'VALIDATION_FAILED',
      ],
      [
        'server.register',
        { serverId: 'b', endpoint: lb.engine.url, dialect: 'vllm', maxInflight: -3 },
        'VALIDATION_FAILED',
      ],
      [
        'server.register',
        { serverId: 'b', endpoint: lb.engine.url, dialect: 'vllm', maxInflight: 1, weight: -1 },
        'VALIDATION_FAILED',
      ],
      ['pool.configure', { poolMaxInflight: 0 }, 'VALIDATION_FAILED'],
      ['pool.configure', { slowStartFraction: 2 }, 'VALIDATION_FAILED'],
      ['lb.cancel', { acquireId: 'x' }, 'VALIDATION_FAILED'],
      ['lb.acquire-many', { ...w, acquires: ids(2_049) }, 'VALIDATION_FAILED'],
    ];
    for (const [operation, body, code] of bad) {
      const call = lb.request(operation, body);
      await expect(call, `${operation} ${JSON.stringify(body).slice(0, 200)}`).rejects.toMatchObject({ code });
    }
    // A million ids exceed the limit of any message: the client refuses the call before it sends anything.
    const burst = lb.request('lb.acquire-many', {
      ...w,
      acquires: ids(1_000_000),
    });
    await expect(burst).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    // The server is suspect for a moment if creating the million ids has delayed the probes of this process.
    await expect.poll(async () => [await lb.status(), (await lb.list()).get('a')?.maxInflight]).toEqual(before);
    expect((await lb.audit()).findings).toEqual([]);
  });
});
