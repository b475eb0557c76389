import { setTimeout as delay } from 'node:timers/promises';
import { WorkerSession } from '@broomwagon/generation';
import { describe, expect, it } from 'vitest';
import { BroomwagonError } from '@broomwagon/contracts';
import { createError, LEASE, streamUntilStopped, WORKER } from '../worker.fixture';
import { WorkerLifecycle } from '../worker-lifecycle';
import { identity, startAttempt } from './attempt.fixture';

const REFUSED = new BroomwagonError('ENGINE_UNREACHABLE', 'refused', { details: { code: 'ECONNREFUSED' } });

describe('an attempt that is stopped', () => {
  it('obeys a stop while its acquire still waits, and returns a lease that may be granted later', async () => {
    const { run, controlPlane, attempt, engines } = await startAttempt();
    controlPlane.on('lb.acquire', () => new Promise(() => undefined));
    const running = run();
    await expect.poll(() => controlPlane.of('lb.acquire')).toHaveLength(1);
    attempt.stop('cut');
    expect(await running).toBe('aborted');
    await expect
      .poll(() => controlPlane.of('lb.release'))
      .toEqual([{ acquireId: attempt.acquireId, outcome: 'aborted' }]);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ ...identity, reason: 'aborted', retryable: true });
    expect(engines.requests).toEqual([]);
  });

  it('returns the lease once when stop and grant arrive together', async () => {
    const { run, controlPlane, attempt, engines, leases } = await startAttempt();
    controlPlane.on('lb.acquire', ({ acquireId }) => {
      attempt.stop('abort');
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await run()).toBe('aborted');
    await expect.poll(() => controlPlane.of('lb.release')).toHaveLength(1);
    expect(controlPlane.of('request.fail')).toHaveLength(1);
    await expect.poll(() => [leases.count, leases.knows(`7.${attempt.acquireId}`)]).toEqual([0, false]);
    // If the engine was called at all, the call was stopped before it began.
    for (const options of engines.options) expect(options.signal?.aborted).toBe(true);
  });

  it.each(['cut', 'abort', 'shutdown', 'lease-lost'] as const)(
    'gives the lease back once when it is stopped in mid-stream: %s',
    async (cause) => {
      const { run, controlPlane, attempt, engines } = await startAttempt();
      engines.generate = streamUntilStopped([1, 2], () => {
        attempt.stop(cause);
        attempt.stop('abort');
      });
      expect(await run()).toBe(cause === 'shutdown' ? 'shutdown' : 'aborted');
      const leaseId = `7.${attempt.acquireId}`;
      expect(controlPlane.of('lb.release')).toEqual([{ leaseId, outcome: 'aborted', tokens: 2 }]);
      expect(controlPlane.of('request.fail')).toHaveLength(1);
    },
  );

  it('saves its tokens at a shutdown before it is stopped, however young it is', async () => {
    const { run, controlPlane, engines, module, attempt, payloads } = await startAttempt();
    const saved: unknown[] = [];
    controlPlane.on('request.save', ({ segment }) => {
      if (segment !== undefined) saved.push([payloads.json(segment.ref), attempt.cause]);
      return { action: 'continue' };
    });
    engines.generate = streamUntilStopped([1, 2]);
    const running = run();
    await expect.poll(() => controlPlane.of('request.save')).toHaveLength(1);
    await module.get(WorkerLifecycle).beforeApplicationShutdown();
    expect(await running).toBe('shutdown');
    expect(saved).toEqual([[expect.objectContaining({ tokenIds: [1, 2] }), undefined]]);
  });

  it('ends with its tokens after its timeout, which counts from the call of the engine', async () => {
    const { run, controlPlane, payloads, engines } = await startAttempt(() => ({ timeoutMs: 50 }));
    // Longer than the whole timeout.
    controlPlane.on('lb.acquire', ({ acquireId }) => delay(100, { ...LEASE, leaseId: `7.${acquireId}` }));
    engines.generate = streamUntilStopped([1, 2], () => undefined);
    expect(await run()).toBe('timeout');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ ...identity, reason: 'timeout', retryable: false, segment: { tokenCount: 2 } });
    expect(payloads.json(fail!.segment!.ref)).toMatchObject({ tokenIds: [1, 2] });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'aborted', tokens: 2 });
  });

  it('has the rest of the time that earlier attempts have left, and reports its own generation time', async () => {
    const { run, controlPlane, engines } = await startAttempt(() => ({ timeoutMs: 60_000, generatedMs: 59_950 }));
    engines.generate = streamUntilStopped([1, 2], () => undefined);
    expect(await run()).toBe('timeout');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ reason: 'timeout', segment: { tokenCount: 2 } });
    expect(fail!.generatedMs).toBeGreaterThanOrEqual(49);
    expect(controlPlane.of('request.save')[0]!.generatedMs).toBeGreaterThanOrEqual(0);
  });

  it('ends without asking for a server when earlier attempts have used up its time', async () => {
    const { run, controlPlane, engines } = await startAttempt(() => ({ timeoutMs: 50, generatedMs: 50 }));
    expect(await run()).toBe('timeout');
    expect(controlPlane.of('request.fail')).toMatchObject([{ ...identity, reason: 'timeout', retryable: false }]);
    expect([controlPlane.of('lb.acquire'), engines.requests]).toEqual([[], []]);
  });

  it('obeys a stop in the middle of a stream at once and keeps the tokens', async () => {
    const { run, controlPlane, attempt, payloads, engines } = await startAttempt();
    engines.generate = streamUntilStopped([1, 2], () => attempt.stop('cut'));
    expect(await run()).toBe('aborted');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ reason: 'aborted', segment: { tokenCount: 2, attempt: '1-a' } });
    expect(payloads.json(fail!.segment!.ref)).toMatchObject({ tokenIds: [1, 2] });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'aborted', tokens: 2 });
  });

  it.each([
    ['the engine has answered', [createError('ENGINE_ERROR'), createError('ENGINE_UNREACHABLE')], 3],
    ['nothing listens there any more', [createError('ENGINE_ERROR'), REFUSED, createError('ENGINE_ERROR')], 2],
  ] as const)('keeps its lease and reports nothing until %s', async (_, errors, calls) => {
    const { run, controlPlane, attempt, engines } = await startAttempt();
    engines.abortErrors.push(...errors);
    const stream = streamUntilStopped([1, 2], () => attempt.stop('abort'));
    engines.generate = async (request, options) => {
      const result = await stream(request, options);
      options.onUnstopped!();
      return result;
    };
    const ended: number[] = [];
    controlPlane.on('lb.release', () => {
      ended.push(engines.aborts.length);
      return { released: true, reason: 'released' };
    });
    expect(await run()).toBe('aborted');
    expect(engines.aborts).toEqual(Array.from({ length: calls }, () => engines.requests[0]!.engineRequestId));
    expect(ended).toEqual([calls]);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'aborted', segment: { tokenCount: 2 } });
  });

  it.each([
    ['the engine has answered', 2],
    ['its lease is void', 1_000],
  ])('keeps the lease of a stalled stream, and reports nothing, until %s', async (until, refusals) => {
    const { run, controlPlane, attempt, engines } = await startAttempt();
    engines.abortErrors.push(...Array.from({ length: refusals }, () => createError('ENGINE_ERROR')));
    engines.generate = (_, { onTokens, onUnstopped }) => {
      onTokens!({ tokenIds: [5, 6], text: 'de', tokenCount: 2 });
      onUnstopped!();
      return Promise.reject(createError('ENGINE_STALLED'));
    };
    const ended: number[] = [];
    controlPlane
      .on('lb.release', () => (ended.push(engines.aborts.length), { released: true, reason: 'released' }))
      .on('request.fail', () => (ended.push(engines.aborts.length), { state: 'pending' }));
    const running = run();
    if (until === 'its lease is void') {
      await expect.poll(() => engines.aborts.length).toBeGreaterThan(0);
      expect(ended).toEqual([]);
      attempt.stop('lease-lost');
    }
    await running;
    expect(ended).toEqual(Array.from({ length: 2 }, () => engines.aborts.length));
    expect(engines.aborts.length).toBeLessThan(until === 'its lease is void' ? 100 : 4);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ segment: { tokenCount: 2 } });
  });

  it('stops when the answer to a partial save is abort', async () => {
    const { run, controlPlane, engines } = await startAttempt();
    controlPlane.on('request.save', () => ({ action: 'abort' }));
    engines.generate = streamUntilStopped([1]);
    expect(await run()).toBe('aborted');
  });

  it('drops the attempts of a fenced epoch without a report', async () => {
    const { run, controlPlane, engines, module, leases } = await startAttempt();
    const session = module.get(WorkerSession);
    await session.established();
    engines.generate = streamUntilStopped([1, 2], () => session.fence(WORKER));
    expect(await run()).toBe('fenced');
    expect(controlPlane.of('request.fail')).toEqual([]);
    expect(controlPlane.of('lb.release')).toEqual([]);
    expect(leases.count).toBe(0);
    await expect.poll(() => controlPlane.of('worker.register')).toHaveLength(2);
    const [first, second] = controlPlane.of('worker.register');
    expect(first!.registrationId).not.toBe(second!.registrationId);
  });
});
