import type { SyncWorkerReply } from '@broomwagon/contracts';
import { HeldLeases, WorkerSession } from '@broomwagon/generation';
import { describe, expect, it, vi } from 'vitest';
import { ServerSigns } from '../../../libs/generation/src/engine/server-signs';
import { Heartbeat } from '../../../libs/generation/src/lifecycle/heartbeat';
import { AttemptRegistry } from './attempts/attempt-registry';
import { createError, LEASE, WORKER, workerBench } from './worker.fixture';

const NOW = 1_000_000;
type Counts = { leases: SyncWorkerReply['items']; attempts: SyncWorkerReply['items'] };

async function start(counts: Counts = { leases: [], attempts: [] }) {
  const bench = await workerBench();
  const { controlPlane, module } = bench;
  await module.get(WorkerSession).established();
  const time = { generation: 'a', nowMs: NOW };
  controlPlane.on('worker.heartbeat', () => ({
    serverTimeMs: time.nowMs,
    generation: time.generation,
    ttlMs: 15_000,
    leaseCount: counts.leases.length,
    leaseDigest: counts.leases.reduce((sum, { id }) => sum + Number(id.split('.')[0]), 0),
    attemptCount: counts.attempts.length,
  }));
  // Pages of one item.
  controlPlane.on('worker.sync', ({ kind, cursor }) => {
    const at = Number(cursor ?? 0);
    const items = counts[kind];
    return { items: items.slice(at, at + 1), cursor: at + 1 < items.length ? String(at + 1) : undefined };
  });
  const heartbeat = module.get(Heartbeat);
  return { ...bench, counts, time, heartbeat, leases: module.get(HeldLeases), registry: module.get(AttemptRegistry) };
}

describe('Heartbeat', () => {
  it('sends the counts of its leases and attempts', async () => {
    const { heartbeat, controlPlane, registry, leases, claim } = await start();
    const attempt = registry.admit(claim(), WORKER)!;
    leases.granted(attempt, `41.${attempt.acquireId}`);
    await heartbeat.beat();
    expect(controlPlane.of('worker.heartbeat')).toEqual([
      { ...WORKER, leaseCount: 1, leaseDigest: 41, attemptCount: 1 },
    ]);
  });

  it('repeats a heartbeat without an answer for more than one interval, since the epoch would expire in a pause', async () => {
    const { heartbeat, controlPlane } = await start();
    let nowMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    controlPlane.on('worker.heartbeat', () => {
      // The interval is 5,000 ms.
      nowMs += 4_000;
      throw createError('UNAVAILABLE');
    });
    await heartbeat.beat();
    clock.mockRestore();
    expect(controlPlane.of('worker.heartbeat')).toHaveLength(3);
  });

  it('reports the progress of calls by server, but not to a load-balancer of the previous release', async () => {
    const { heartbeat, controlPlane, module } = await start();
    module.get(ServerSigns).begin(LEASE, 9);
    await heartbeat.beat();
    const { serverId, epoch } = LEASE;
    const servers = [{ serverId, epoch, tokens: 0, silentMs: expect.any(Number), contextTokens: 9 }];
    expect(controlPlane.of('worker.heartbeat')).toMatchObject([{ servers }]);
    const answer = {
      serverTimeMs: NOW,
      generation: 'a',
      ttlMs: 15_000,
      leaseCount: 0,
      leaseDigest: 0,
      attemptCount: 0,
    };
    controlPlane.on('worker.heartbeat', (body) => {
      if ('servers' in body) throw createError('VALIDATION_FAILED');
      return answer;
    });
    await heartbeat.beat();
    const [, refused, repeated] = controlPlane.of('worker.heartbeat');
    expect([refused, repeated]).toEqual([
      expect.objectContaining({ servers }),
      expect.not.objectContaining({ servers }),
    ]);
  });

  it.each(['FENCED', 'WORKER_NOT_FOUND'] as const)('starts again with nothing when answered %s', async (code) => {
    const { heartbeat, controlPlane, registry, claim } = await start();
    const attempt = registry.admit(claim(), WORKER)!;
    controlPlane.on('worker.heartbeat', () => {
      throw createError(code);
    });
    await heartbeat.beat();
    expect(attempt.isExpired).toBe(true);
    expect(registry.size).toBe(0);
    await expect.poll(() => controlPlane.of('worker.register')).toHaveLength(2);
  });

  it('asks for the counts only when they differ twice in a row', async () => {
    const { heartbeat, controlPlane, counts } = await start();
    counts.leases.push({ id: '9.a', sinceMs: NOW });
    await heartbeat.beat();
    counts.leases.pop();
    await heartbeat.beat();
    counts.leases.push({ id: '9.a', sinceMs: NOW });
    await heartbeat.beat();
    expect(controlPlane.of('worker.sync')).toEqual([]);
    await heartbeat.beat();
    expect(controlPlane.of('worker.sync').length).toBeGreaterThan(0);
  });

  it('asks for the counts at once when syncAsked is set, though they agree', async () => {
    const { heartbeat, controlPlane, registry, leases, claim, counts } = await start();
    const attempt = registry.admit(claim(), WORKER)!;
    leases.granted(attempt, `41.${attempt.acquireId}`);
    counts.leases = [{ id: `41.${attempt.acquireId}`, sinceMs: 0 }];
    const reply = {
      serverTimeMs: NOW,
      generation: 'a',
      ttlMs: 15_000,
      leaseCount: 1,
      leaseDigest: 41,
      attemptCount: 1,
    };
    controlPlane.on('worker.heartbeat', () => reply);
    await heartbeat.beat();
    expect(controlPlane.of('worker.sync')).toEqual([]);
    controlPlane.on('worker.heartbeat', () => ({ ...reply, syncAsked: true }));
    await heartbeat.beat();
    await heartbeat.stop();
    expect(controlPlane.of('worker.sync').map(({ kind }) => kind)).toContain('leases');
    expect(controlPlane.of('lb.release')).toEqual([]);
  });

  it('compares attempts one by one after Redis was set back, though the counts agree', async () => {
    const { heartbeat, controlPlane, registry, claim, counts, time } = await start();
    const forgotten = registry.admit(claim({ requestId: 'forgotten' }), WORKER)!;
    counts.attempts = [{ id: 'forgotten', attempt: '1-a', sinceMs: 0 }];
    await heartbeat.beat();
    await heartbeat.beat();
    expect(controlPlane.of('worker.sync')).toEqual([]);
    // Redis has forgotten that claim, and has given this worker another one a moment ago.
    counts.attempts = [{ id: 'other', attempt: '1-b', sinceMs: NOW }];
    time.generation = 'b';
    await heartbeat.beat();
    await heartbeat.stop();
    expect(forgotten.cause).toBe('expired');
    expect(controlPlane.of('request.fail')).toEqual([]);
    time.nowMs += 10_001;
    await heartbeat.beat();
    await heartbeat.stop();
    expect(controlPlane.of('request.fail')).toMatchObject([
      { requestId: 'other', attempt: '1-b', reason: 'unclaimed' },
    ]);
    const syncs = controlPlane.of('worker.sync').length;
    registry.end(forgotten);
    counts.attempts = [];
    time.nowMs += 60_000;
    await heartbeat.beat();
    expect(controlPlane.of('worker.sync')).toHaveLength(syncs);
  });

  it('returns items that are old in the counts and unknown here, on every page, and no item that may be on its way', async () => {
    const { heartbeat, controlPlane, counts, leases, registry, claim } = await start();
    const held = registry.admit(claim({ requestId: 'held' }), WORKER)!;
    leases.granted(held, `1.${held.acquireId}`);
    const asking = registry.admit(claim({ requestId: 'asking' }), WORKER)!;
    leases.asking(asking);
    const old = NOW - 10_001;
    counts.leases = [
      { id: `1.${held.acquireId}`, sinceMs: old },
      { id: '2.young', sinceMs: NOW - 9_000 },
      { id: `3.${asking.acquireId}`, sinceMs: old },
      { id: '4.lost', sinceMs: old },
    ];
    counts.attempts = [
      { id: 'held', attempt: '1-a', sinceMs: old },
      { id: 'asking', attempt: '1-a', sinceMs: old },
      { id: 'young', attempt: '1-a', sinceMs: NOW },
      { id: 'lost', attempt: '3-a', sinceMs: old },
    ];
    await heartbeat.beat();
    await heartbeat.beat();
    await heartbeat.stop();
    expect(controlPlane.of('lb.release')).toEqual([{ leaseId: '4.lost', outcome: 'unclaimed' }]);
    expect(controlPlane.of('request.fail')).toEqual([
      { requestId: 'lost', attempt: '3-a', ...WORKER, reason: 'unclaimed', retryable: true },
    ]);
    expect(held.signal.aborted || asking.signal.aborted).toBe(false);
  });

  it('keeps sending heartbeats while the counts are compared, and compares them once at a time', async () => {
    const { heartbeat, controlPlane, counts } = await start();
    let answer: () => void = () => undefined;
    controlPlane.on('worker.sync', () => new Promise((resolve) => (answer = () => resolve({ items: [] }))));
    counts.leases = [{ id: '9.a', sinceMs: NOW }];
    for (let beats = 1; beats <= 5; beats++) {
      await heartbeat.beat();
      expect(controlPlane.of('worker.heartbeat')).toHaveLength(beats);
    }
    expect(controlPlane.of('worker.sync')).toHaveLength(1);
    controlPlane.on('worker.sync', () => ({ items: [] }));
    answer();
    await heartbeat.stop();
  });

  it('stops items that it holds and the counts do not', async () => {
    const { heartbeat, leases, registry, claim, counts } = await start();
    const withoutLease = registry.admit(claim({ requestId: 'a' }), WORKER)!;
    leases.granted(withoutLease, `1.${withoutLease.acquireId}`);
    const releasing = registry.admit(claim({ requestId: 'b' }), WORKER)!;
    leases.granted(releasing, `2.${releasing.acquireId}`);
    leases.releasing(releasing);
    const unknown = registry.admit(claim({ requestId: 'c' }), WORKER)!;
    counts.attempts = ['a', 'b'].map((id) => ({ id, attempt: '1-a', sinceMs: NOW }));
    await heartbeat.beat();
    await heartbeat.beat();
    await heartbeat.stop();
    expect([withoutLease.cause, releasing.cause, unknown.cause]).toEqual(['lease-lost', undefined, 'expired']);
  });
});
