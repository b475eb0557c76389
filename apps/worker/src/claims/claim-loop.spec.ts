import type { Claim } from '@broomwagon/contracts';
import { WorkerSession } from '@broomwagon/generation';
import { describe, expect, it } from 'vitest';
import { AttemptRegistry } from '../attempts/attempt-registry';
import { createError, streamUntilStopped, WORKER, workerBench } from '../worker.fixture';
import { WorkerLifecycle } from '../worker-lifecycle';
import type { WorkerConfig } from '../worker.config';
import { ClaimLoop } from './claim-loop';

/** Starts a worker and a coordinator with this many requests; claims wait while there are none. */
async function start(requests: number, settings: Partial<WorkerConfig> = {}) {
  const bench = await workerBench(settings);
  const { controlPlane, module } = bench;
  const pending: Claim[] = [];
  for (let index = 0; index < requests; index++) {
    pending.push(bench.claim({ requestId: `j/g/${index}`, sampleIndex: index }));
  }
  controlPlane.on('request.claim', ({ max }) => {
    const claims = pending.splice(0, max);
    return claims.length > 0 ? { claims } : new Promise(() => undefined);
  });
  const loop = module.get(ClaimLoop);
  return { ...bench, pending, loop, registry: module.get(AttemptRegistry), session: module.get(WorkerSession) };
}

describe('ClaimLoop', () => {
  it('never holds more than its concurrency, and claims when places are free', async () => {
    const { loop, controlPlane, registry, engines } = await start(100, { concurrency: 10, job: 'j' });
    let most = 0;
    const play = engines.generate;
    engines.generate = (...args) => {
      most = Math.max(most, registry.size);
      return play(...args);
    };
    loop.start();
    await expect.poll(() => controlPlane.of('request.complete')).toHaveLength(100);
    expect(most).toBe(10);
    expect(new Set(controlPlane.of('request.claim').map(({ job }) => job))).toEqual(new Set(['j']));
    expect(new Set(controlPlane.of('request.claim').map(({ claimId }) => claimId)).size).toBe(
      controlPlane.of('request.claim').length,
    );
    await loop.stop();
  });

  it('repeats a claim whose answer was lost under the same id, for the rest of its wait', async () => {
    const { loop, controlPlane, claim } = await start(0);
    let tries = 0;
    controlPlane.on('request.claim', () => {
      tries++;
      if (tries === 1) throw createError('TIMEOUT');
      return tries === 2 ? { claims: [claim()] } : new Promise(() => undefined);
    });
    loop.start();
    await expect.poll(() => controlPlane.of('request.complete')).toHaveLength(1);
    const [first, second] = controlPlane.of('request.claim');
    expect({ ...second, waitMs: 0 }).toEqual({ ...first, waitMs: 0 });
    expect(second!.waitMs).toBeLessThanOrEqual(first!.waitMs!);
    await loop.stop();
  });

  it('claims again, under a new id, when the pool was paused', async () => {
    const { loop, controlPlane, claim } = await start(0);
    controlPlane.on('request.claim', () => {
      if (controlPlane.of('request.claim').length <= 2) throw createError('POOL_PAUSED');
      return controlPlane.of('request.complete').length === 0 ? { claims: [claim()] } : new Promise(() => undefined);
    });
    loop.start();
    await expect.poll(() => controlPlane.of('request.complete')).toHaveLength(1);
    const [first, second, third] = controlPlane.of('request.claim').map(({ claimId }) => claimId);
    expect(new Set([first, second, third]).size).toBe(3);
    await loop.stop();
  });

  it('drops grants of an expired epoch, and claims for the new epoch', async () => {
    const { loop, controlPlane, session, claim, engines } = await start(0);
    let grant: (reply: { claims: Claim[] }) => void = () => undefined;
    controlPlane.on('request.claim', () => new Promise((resolve) => (grant = resolve)));
    loop.start();
    await expect.poll(() => controlPlane.of('request.claim')).toHaveLength(1);
    controlPlane.on('worker.register', () => ({ workerEpoch: 'e4', ttlMs: 1, serverTimeMs: 1 }));
    const late = grant;
    session.fence(WORKER);
    late({ claims: [claim()] });
    await expect.poll(() => controlPlane.of('request.claim')).toHaveLength(2);
    expect(controlPlane.of('request.claim')[1]).toMatchObject({ workerEpoch: 'e4' });
    expect(engines.requests).toEqual([]);
    await loop.stop();
  });

  it.each(['FENCED', 'WORKER_NOT_FOUND'] as const)('registers again when a claim is answered %s', async (code) => {
    const { loop, controlPlane } = await start(0);
    controlPlane.on('request.claim', ({ workerEpoch }) => {
      if (workerEpoch === WORKER.workerEpoch) throw createError(code);
      return new Promise(() => undefined);
    });
    let epoch = 3;
    controlPlane.on('worker.register', () => ({ workerEpoch: `e${epoch++}`, ttlMs: 1, serverTimeMs: 1 }));
    loop.start();
    await expect.poll(() => controlPlane.of('request.claim').at(-1)).toMatchObject({ workerEpoch: 'e4' });
    await loop.stop();
  });
});

describe('WorkerLifecycle', () => {
  it('ends at once when it was never registered', async () => {
    const { loop, module, controlPlane } = await start(0);
    controlPlane.on('worker.register', () => {
      throw createError('UNAVAILABLE');
    });
    loop.start();
    await expect.poll(() => controlPlane.of('worker.register').length).toBeGreaterThan(0);
    await module.get(WorkerLifecycle).beforeApplicationShutdown();
    expect(controlPlane.of('worker.deregister')).toEqual([]);
  });

  it('hands back requests that do not end in time, with their tokens, and then deregisters', async () => {
    const { loop, module, controlPlane, engines } = await start(3, { drainMs: 20 });
    engines.generate = streamUntilStopped([1, 2]);
    loop.start();
    await expect.poll(() => engines.requests).toHaveLength(3);
    await module.get(WorkerLifecycle).beforeApplicationShutdown();
    expect(controlPlane.of('request.fail')).toHaveLength(3);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'shutdown', segment: { tokenCount: 2 } });
    expect(controlPlane.of('lb.release')).toHaveLength(3);
    expect(controlPlane.calls.at(-1)).toEqual({ operation: 'worker.deregister', body: WORKER });
  });

  it('lets a request finish that is nearly done', async () => {
    const { loop, module, controlPlane, engines } = await start(1);
    let finish: () => void = () => undefined;
    engines.generate = () =>
      new Promise((resolve) => {
        finish = () => resolve({ tokenIds: [1], text: 'a', tokenCount: 1, finishReason: 'stop' });
      });
    loop.start();
    await expect.poll(() => engines.requests).toHaveLength(1);
    const down = module.get(WorkerLifecycle).beforeApplicationShutdown();
    finish();
    await down;
    expect(controlPlane.of('request.complete')).toHaveLength(1);
    expect(controlPlane.of('request.fail')).toEqual([]);
  });
});
