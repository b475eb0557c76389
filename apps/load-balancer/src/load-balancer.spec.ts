import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { bootstrapService, loadConfig, setFailpoints, type RunningService } from '@broomwagon/platform';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LoadBalancerConfig } from './load-balancer.config';
import { LoadBalancerModule } from './load-balancer.module';

const { pool: keyPrefix } = testPool();
let replicas: RunningService<LoadBalancerConfig>[];
let client: TypedClient;
let engine: FakeEngine;
let pool: string;
let sequence = 0;

/** An engine that is well, or answers 500, or hangs up. */
class FakeEngine {
  status = 200;
  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakeEngine> {
    const server = createServer((_, response) => response.writeHead(made.status).end('{}'));
    const made = new FakeEngine(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return made;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

function startReplica(): Promise<RunningService<LoadBalancerConfig>> {
  const config = loadConfig(LoadBalancerConfig, {
    env: {
      NATS_URL: testNatsUrl(),
      REDIS_URL: testRedisUrl(),
      REDIS_KEY_PREFIX: keyPrefix,
      LOG_LEVEL: 'silent',
      MAX_IN_FLIGHT: '4096',
      PROBE_INTERVAL_MS: '200',
      SERVER_FAILED_AFTER_MS: '1500',
      START_GRACE_MS: '0',
      UPKEEP_INTERVAL_MS: '50',
    },
  });
  // No other test's load-balancer may answer for ours: a queue group of its own pools.
  config.pools = Array.from({ length: 20 }, (_, n) => `${keyPrefix}-${n}`);
  return bootstrapService(LoadBalancerModule, { app: 'load-balancer', config });
}

beforeAll(async () => {
  engine = await FakeEngine.start();
  replicas = await Promise.all([startReplica(), startReplica()]);
  client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await client.messaging.connection.close();
  engine.stop();
  await flushPrefix(testRedisUrl(), `${keyPrefix}:`);
});
beforeEach(() => {
  pool = `${keyPrefix}-${sequence++}`;
});

const server = (serverId: string, maxInflight = 100, endpoint = engine.url) =>
  client.call(pool, 'server.register', { serverId, endpoint, dialect: 'vllm', instanceId: serverId, maxInflight });
async function worker(workerId = 'w', ttlMs = 60_000) {
  const { workerEpoch } = await client.call(pool, 'worker.register', {
    workerId,
    registrationId: `r${acquires++}`,
    ttlMs,
  });
  return { workerId, workerEpoch };
}
let acquires = 0;
const acquire = (by: { workerId: string; workerEpoch: number }, more: object = {}) =>
  client.call(pool, 'lb.acquire', { acquireId: `a${acquires++}`, requestId: 'job/g/0', ...by, ...more });
const status = () => client.call(pool, 'lb.status', {});

describe('two replicas of the load-balancer', () => {
  it('use all servers alike for concurrent acquires, and balance their books', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await server(id);
    const w = await worker();
    const grants = await Promise.all(Array.from({ length: 200 }, () => acquire(w)));
    expect((await status()).perServer.map(({ inflight }) => inflight)).toEqual([50, 50, 50, 50]);
    expect(grants[0]).toMatchObject({
      endpoint: engine.url,
      dialect: 'vllm',
      weightVersion: 0,
      decision: { policy: 'least-inflight', branch: 'tie' },
    });
    const released = await Promise.all(
      grants.map(({ leaseId }) => client.call(pool, 'lb.release', { leaseId, outcome: 'finished' })),
    );
    expect(released.every((reply) => reply.released)).toBe(true);
    expect(await status()).toMatchObject({ servers: 4, readyServers: 4, leases: 0, waiters: 0, workers: 1 });
  });

  it('grant a burst of 2,048 in order, the same again when repeated, and take it back', async () => {
    await server('a', 2_000);
    await server('b', 2_000);
    const w = await worker();
    const burst = Array.from({ length: 2_048 }, (_, n) => ({ acquireId: `burst-${n}`, requestId: `job/g/${n}` }));
    const first = await client.call(pool, 'lb.acquire-many', { ...w, acquires: burst });
    expect(first.leases.map(({ acquireId }) => acquireId)).toEqual(burst.map(({ acquireId }) => acquireId));
    expect(Object.keys(first.servers).sort()).toEqual(['a', 'b']);
    expect(await client.call(pool, 'lb.acquire-many', { ...w, acquires: burst })).toEqual(first);
    const digest = first.leases.reduce(
      (sum, lease) => sum + ('leaseId' in lease ? Number.parseInt(lease.leaseId, 10) : 0),
      0,
    );
    const beat = await client.call(pool, 'worker.heartbeat', { ...w, leaseCount: 0, leaseDigest: 0, attemptCount: 0 });
    expect(beat).toMatchObject({ leaseCount: 2_048, leaseDigest: digest });
    const releases = burst.map(({ acquireId }) => ({ acquireId, outcome: 'finished' as const }));
    const { results } = await client.call(pool, 'lb.release-many', { releases });
    expect(results.filter(({ released }) => released).length).toBe(2_048);
    expect((await status()).leases).toBe(0);
  });

  it('answer each waiting acquire exactly once, whichever replica got the release', async () => {
    await server('a', 4);
    const w = await worker();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const lease = await acquire(w, { waitMs: 20_000 });
        const release = await client.call(pool, 'lb.release', { leaseId: lease.leaseId, outcome: 'finished' });
        return { leaseId: lease.leaseId, branch: lease.decision.branch, released: release.released };
      }),
    );
    expect(new Set(outcomes.map(({ leaseId }) => leaseId)).size).toBe(100);
    expect(outcomes.every(({ released }) => released)).toBe(true);
    expect(outcomes.some(({ branch }) => branch === 'waited')).toBe(true);
    expect(await status()).toMatchObject({ leases: 0, waiters: 0 });
  });

  it('move a lease to another server, once, whichever replica is asked', async () => {
    await server('a', 1);
    const w = await worker();
    const lease = await acquire(w);
    const waiting = acquire(w, { waitMs: 20_000, excludeServers: ['b'] });
    await expect.poll(async () => (await status()).waiters).toBe(1);
    await server('b', 1);
    const move = { transferId: 'move-1', leaseId: lease.leaseId, ...w, targetServerId: 'b', reason: 'drain' };
    const moves = await Promise.all(Array.from({ length: 4 }, () => client.call(pool, 'lb.transfer', move)));
    expect(moves[0]).toMatchObject({
      leaseId: lease.leaseId,
      serverId: 'b',
      endpoint: engine.url,
      decision: { branch: 'transferred', inflight: 1 },
    });
    expect(moves.slice(1)).toEqual([moves[0], moves[0], moves[0]]);
    expect(await waiting).toMatchObject({ serverId: 'a' });
    const toNowhere = { ...move, transferId: 'move-2', targetServerId: 'c' };
    await expect(client.call(pool, 'lb.transfer', toNowhere)).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    const nobody = client.call(pool, 'lb.transfer', { ...toNowhere, leaseId: 'nonsense' });
    await expect(nobody).rejects.toMatchObject({ code: 'LEASE_NOT_FOUND' });
    const release = { leaseId: lease.leaseId, outcome: 'finished' as const };
    expect(await client.call(pool, 'lb.release', release)).toMatchObject({ released: true });
    expect(await client.call(pool, 'lb.release', release)).toMatchObject({ released: false });
    expect((await status()).perServer.map(({ inflight }) => inflight).sort()).toEqual([0, 1]);
  });

  it('say NO_SERVER_AVAILABLE at once, or after waitMs', async () => {
    const w = await worker();
    await expect(acquire(w)).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE', retryable: true });
    const startedAt = performance.now();
    await expect(acquire(w, { waitMs: 300 })).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(290);
  });

  it('grant a waiter the moment a server registers', async () => {
    const w = await worker();
    const waiting = acquire(w, { waitMs: 20_000 });
    await expect.poll(async () => (await status()).waiters).toBe(1);
    await server('a');
    expect(await waiting).toMatchObject({ serverId: 'a', decision: { branch: 'waited' } });
  });

  it("give a dead worker's leases back within its time to live, and fence what it says later", async () => {
    await server('a');
    const dead = await worker('dead', 500);
    await worker('alive1');
    await worker('alive2');
    const lease = await acquire(dead);
    await expect.poll(async () => (await status()).leases, { timeout: 5_000 }).toBe(0);
    const late = await client.call(pool, 'lb.release', { leaseId: lease.leaseId, outcome: 'finished' });
    expect(late.released).toBe(false);
    await expect(acquire(dead)).rejects.toMatchObject({ code: 'FENCED' });
    const beat = { ...dead, leaseCount: 1, leaseDigest: 1, attemptCount: 0 };
    await expect(client.call(pool, 'worker.heartbeat', beat)).rejects.toMatchObject({ code: 'FENCED' });
  });

  it('return at once what a worker holds that deregisters or registers anew', async () => {
    await server('a');
    const first = await worker('w');
    await acquire(first);
    const second = await worker('w');
    await expect.poll(async () => (await status()).leases).toBe(0);
    await acquire(second);
    expect(await client.call(pool, 'worker.deregister', second)).toEqual({ deregistered: true });
    await expect.poll(async () => (await status()).leases).toBe(0);
  });

  it('take an engine that does not answer out of use, void its leases, and bring it back as a new epoch', async () => {
    const sick = await FakeEngine.start();
    await server('well-1');
    await server('well-2');
    const { epoch } = await server('sick', 100, sick.url);
    const w = await worker();
    const leases = await Promise.all([acquire(w), acquire(w), acquire(w)]);
    const stateOf = async () => (await status()).perServer.find(({ serverId }) => serverId === 'sick')!;
    // Bad requests are an answer: only silence and 5xx count.
    sick.status = 404;
    await expect.poll(async () => (await client.call(pool, 'server.list', {})).servers.length).toBe(3);
    sick.status = 503;
    await expect.poll(async () => (await stateOf()).state, { timeout: 5_000 }).toBe('suspect');
    await expect.poll(async () => (await stateOf()).state, { timeout: 10_000 }).toBe('failed');
    await expect.poll(async () => (await status()).leases).toBe(2);
    sick.status = 200;
    await expect.poll(async () => (await stateOf()).state, { timeout: 5_000 }).toBe('ready');
    expect((await stateOf()).epoch).toBeGreaterThan(epoch);
    const onSick = leases.find((lease) => lease.serverId === 'sick')!;
    const late = await client.call(pool, 'lb.release', { leaseId: onSick.leaseId, outcome: 'failed' });
    expect(late.released).toBe(false);
    sick.stop();
  });

  it('keep the only server in use though its probes fail', async () => {
    const silent = await FakeEngine.start();
    await server('a', 100, silent.url);
    const w = await worker();
    silent.stop();
    await expect.poll(async () => (await status()).perServer[0]?.state, { timeout: 5_000 }).toBe('suspect');
    expect(await acquire(w)).toMatchObject({ serverId: 'a' });
  });

  it('give a call that was done and lost its reply the same lease when it is repeated', async () => {
    await server('a');
    const w = await worker();
    setFailpoints('load-balancer.acquire.before-reply=throw@1,load-balancer.release.before-reply=throw@1');
    await expect(acquire(w, { acquireId: 'lost' })).rejects.toMatchObject({ code: 'INTERNAL', retryable: true });
    const lease = await acquire(w, { acquireId: 'lost' });
    expect(lease.decision).toMatchObject({ branch: 'repeated', inflight: 1 });
    const release = { leaseId: lease.leaseId, outcome: 'finished' as const };
    await expect(client.call(pool, 'lb.release', release)).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await client.call(pool, 'lb.release', release)).toEqual({ released: false, reason: 'already-released' });
    expect((await status()).leases).toBe(0);
    setFailpoints('');
  });

  it('refuse bad input and change nothing', async () => {
    await server('a');
    const w = await worker();
    const before = await status();
    const bad: [Parameters<typeof client.call>[1], object][] = [
      ['lb.acquire', { acquireId: 'has space', requestId: 'r', ...w }],
      ['lb.acquire', { acquireId: 'x', requestId: 'r', ...w, waitMs: 30_001 }],
      ['lb.acquire', { acquireId: 'x', requestId: 'r', ...w, surprise: 1 }],
      ['lb.acquire-many', { ...w, acquires: [{ acquireId: 'x', requestId: 'r', waitMs: 5 }] }],
      ['lb.acquire-many', { ...w, acquires: [] }],
      ['lb.release', { outcome: 'finished' }],
      ['server.register', { serverId: 'b', endpoint: 'not a url', dialect: 'vllm', maxInflight: 1 }],
      ['server.register', { serverId: 'b', endpoint: engine.url, dialect: 'vllm', maxInflight: 0 }],
      ['server.list', { cursor: 'x' }],
      ['worker.sync', { ...w, kind: 'leases', cursor: 'x' }],
    ];
    for (const [operation, body] of bad) {
      const call = client.messaging.request(`rollout.v1.${pool}.${operation}`, body);
      await expect(call, `${operation} ${JSON.stringify(body)}`).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    }
    const heartbeat = client.call(pool, 'server.heartbeat', { serverId: 'nobody', epoch: 1 });
    await expect(heartbeat).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
    expect(await client.call(pool, 'server.remove', { serverId: 'nobody' })).toEqual({ removed: false });
    expect(await client.call(pool, 'lb.release', { leaseId: 'nonsense', outcome: 'finished' })).toEqual({
      released: false,
      reason: 'unknown',
    });
    // Optional fields may be null.
    const nulls = { sessionId: null, priority: null, waitMs: null, weightVersion: null };
    const granted = await client.messaging.request(`rollout.v1.${pool}.lb.acquire`, {
      acquireId: 'nulls',
      requestId: 'r',
      ...w,
      ...nulls,
    });
    expect(granted).toMatchObject({ serverId: 'a' });
    await client.call(pool, 'lb.release', { acquireId: 'nulls', leaseId: null as never, outcome: 'finished' });
    expect(await status()).toEqual(before);
  });

  it('are ready when Redis answers, and show their metrics', async () => {
    const base = `http://127.0.0.1:${replicas[0]!.httpPort}`;
    expect(await (await fetch(`${base}/readyz`)).json()).toMatchObject({
      status: 'ok',
      info: { redis: { status: 'up' } },
    });
    const page = await (await fetch(`${base}/metrics`)).text();
    for (const name of ['leases_count', 'waiters_count', 'acquires_total', 'leases_reaped_total']) {
      expect(page).toContain(`broomwagon_${name}`);
    }
  });
});
