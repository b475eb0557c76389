import { afterEach, describe, expect, it, vi } from 'vitest';
import { LEASE, WORKER, errorOf, streamUntilStopped, workerBench, type WorkerBench } from '../worker.fixture';
import { BroomwagonError, type Claim } from '@broomwagon/contracts';
import { setFailpoints } from '@broomwagon/platform';
import type { WorkerConfig } from '../worker.config';
import { WorkerSession } from '../session/worker-session';
import { AttemptRegistry } from './attempt-registry';
import { AttemptRunner } from './attempt-runner';
import { HeldLeases } from './held-leases';

async function start(changes: (bench: WorkerBench) => Partial<Claim> = () => ({}), settings?: Partial<WorkerConfig>) {
  const bench = await workerBench(settings);
  const claim = bench.claim(changes(bench));
  const attempt = bench.module.get(AttemptRegistry).admit(claim, WORKER)!;
  const run = () => bench.module.get(AttemptRunner).run(attempt);
  return { ...bench, attempt, run, leases: bench.module.get(HeldLeases), registry: bench.module.get(AttemptRegistry) };
}
const identity = { requestId: 'j/g/0', attempt: 1, ...WORKER };

const REFUSED = new BroomwagonError('ENGINE_UNREACHABLE', 'refused', { details: { code: 'ECONNREFUSED' } });

describe('AttemptRunner', () => {
  afterEach(() => setFailpoints(''));

  it('runs a request: acquire, checkpoint, generate, store, release, complete', async () => {
    const { run, controlPlane, payloads, engines, leases, registry, attempt } = await start(() => ({
      sampleIndex: 4,
      sampling: { seed: 100, temperature: 1 },
    }));
    expect(await run()).toBe('finished');
    expect(engines.requests[0]).toMatchObject({
      prompt: { promptTokenIds: [10, 11] },
      sampling: { seed: 104, temperature: 1 },
      maxTokens: 100,
    });
    const [complete] = controlPlane.of('request.complete');
    expect(complete).toMatchObject({ ...identity, finishReason: 'stop' });
    expect(complete!.segment).toMatchObject({ serverId: 's1', serverEpoch: 2, weightVersion: 5, tokenCount: 3 });
    expect(payloads.json(complete!.segment!.ref)).toEqual({ tokenIds: [1, 2, 3], text: 'abc' });
    const acquire = controlPlane.of('lb.acquire')[0]!;
    expect(acquire).toMatchObject({ ...WORKER, acquireId: attempt.acquireId, requestId: 'j/g/0', groupId: 'g' });
    expect(controlPlane.of('lb.release')).toEqual([
      { leaseId: `7.${attempt.acquireId}`, outcome: 'finished', tokens: 3 },
    ]);
    expect([leases.count, leases.digest, registry.size]).toEqual([0, 0, 0]);
  });

  it('goes on from the tokens of earlier attempts, cut to what the books say', async () => {
    const { run, engines, payloads, attempt } = await start();
    const ref1 = await payloads.put('j', 'j/g/0', '1.2', Buffer.from('{"tokenIds":[1,2],"text":"ab"}'));
    const ref2 = await payloads.put('j', 'j/g/0', '2.1', Buffer.from('{"tokenIds":[3,99],"text":"c"}'));
    const segment = { serverId: 's', serverEpoch: 1, weightVersion: 1 };
    attempt.claim.segments.push(
      { ...segment, attempt: 1, tokenCount: 2, ref: ref1 },
      { ...segment, attempt: 2, tokenCount: 1, ref: ref2 },
    );
    expect(await run()).toBe('finished');
    expect(engines.requests[0]!.made).toEqual({ tokenIds: [1, 2, 3], text: 'abc', tokenCount: 3 });
    // Stored by others: not ours to remove.
    expect(payloads.namesOf('j/g/0')).toEqual(['1.2', '2.1', '1.3']);
  });

  it('completes at once, without a server, when the budget is used up', async () => {
    const { run, attempt, payloads, controlPlane } = await start(() => ({ maxTokens: 2 }));
    const ref = await payloads.put('j', 'j/g/0', '1.2', Buffer.from('{"tokenIds":[1,2]}'));
    attempt.claim.segments.push({ attempt: 1, serverId: 's', serverEpoch: 1, weightVersion: 1, tokenCount: 2, ref });
    expect(await run()).toBe('finished');
    expect(controlPlane.calls).toEqual([
      { operation: 'request.complete', body: { ...identity, finishReason: 'length' } },
    ]);
  });

  it('hands back a request whose prompt is not there, for good', async () => {
    const { run, controlPlane } = await start(() => ({ promptRef: 'redis~j~g~other' }));
    expect(await run()).toBe('payload');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'payload', retryable: false });
    expect(controlPlane.of('lb.acquire')).toEqual([]);
  });

  it.each(['{"text":5}', '{"messages":"hi"}', '{"messages":[null]}', '{"text":"a","promptTokenIds":[1]}', '{}', '[]'])(
    'fails a request whose prompt payload is %s, for good',
    async (payload) => {
      const { run, controlPlane, payloads, attempt } = await start();
      payloads.payloads.set(attempt.claim.promptRef, Buffer.from(payload));
      expect(await run()).toBe('payload');
      expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'payload', retryable: false });
      expect(controlPlane.of('lb.acquire')).toEqual([]);
    },
  );

  it('asks for a server with one acquireId until there is one', async () => {
    const { run, controlPlane } = await start();
    const answers = ['WAIT_TIMEOUT', 'TIMEOUT', 'NO_SERVER_AVAILABLE'] as const;
    let asked = 0;
    controlPlane.on('lb.acquire', ({ acquireId }) => {
      const code = answers[asked++];
      if (code !== undefined) throw errorOf(code);
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await run()).toBe('finished');
    expect(new Set(controlPlane.of('lb.acquire').map(({ acquireId }) => acquireId)).size).toBe(1);
  });

  it('leaves a server that takes text only to others, and says from then on that it needs token ids', async () => {
    const { run, controlPlane, engines, claim, module } = await start();
    controlPlane.on('lb.acquire', ({ acquireId, needs }) => {
      const dialect = needs?.includes('tokenIdsIn') ? 'vllm' : 'openai';
      return { ...LEASE, leaseId: `7.${acquireId}`, dialect };
    });
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    expect(controlPlane.of('lb.release')).toHaveLength(1);
    expect(engines.requests).toEqual([]);
    const again = module.get(AttemptRegistry).admit(claim({ attempt: 2 }), WORKER)!;
    expect(await module.get(AttemptRunner).run(again)).toBe('finished');
    expect(controlPlane.of('lb.acquire').map(({ needs }) => needs)).toEqual([undefined, ['tokenIdsIn']]);
  });

  it('fails a request whose acquire is refused, instead of asking for ever', async () => {
    const { run, controlPlane } = await start();
    controlPlane.on('lb.acquire', () => {
      throw errorOf('VALIDATION_FAILED');
    });
    expect(await run()).toBe('engine-rejected');
    expect(controlPlane.of('lb.acquire')).toHaveLength(1);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'engine-rejected', retryable: false });
  });

  it('gives up without a server after its deadline and leaves a tombstone for a late grant', async () => {
    const { run, controlPlane, attempt, leases } = await start(undefined, { noServerDeadlineMs: 30 });
    controlPlane.on('lb.acquire', () => {
      throw errorOf('NO_SERVER_AVAILABLE');
    });
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    expect(controlPlane.of('lb.release')).toEqual([{ acquireId: attempt.acquireId, outcome: 'aborted' }]);
    await expect.poll(() => leases.knows(`7.${attempt.acquireId}`)).toBe(false);
  });

  it('obeys a stop while its acquire still waits, and gives back what may yet be granted', async () => {
    const { run, controlPlane, attempt, engines } = await start();
    controlPlane.on('lb.acquire', () => new Promise(() => undefined));
    const running = run();
    await expect.poll(() => controlPlane.of('lb.acquire')).toHaveLength(1);
    attempt.stop('cut');
    expect(await running).toBe('aborted');
    expect(controlPlane.of('lb.release')).toEqual([{ acquireId: attempt.acquireId, outcome: 'aborted' }]);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ ...identity, reason: 'aborted', retryable: true });
    expect(engines.requests).toEqual([]);
  });

  it('gives the lease back once when the stop comes together with the grant', async () => {
    const { run, controlPlane, attempt, engines, leases } = await start();
    controlPlane.on('lb.acquire', ({ acquireId }) => {
      attempt.stop('abort');
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await run()).toBe('aborted');
    expect(controlPlane.of('lb.release')).toHaveLength(1);
    expect(controlPlane.of('request.fail')).toHaveLength(1);
    await expect.poll(() => [leases.count, leases.knows(`7.${attempt.acquireId}`)]).toEqual([0, false]);
    // Stopped before it began, if it was asked at all.
    for (const options of engines.options) expect(options.signal?.aborted).toBe(true);
  });

  it.each(['cut', 'abort', 'shutdown', 'lease-lost'] as const)(
    'gives the lease back once when it is stopped in mid-stream: %s',
    async (cause) => {
      const { run, controlPlane, attempt, engines } = await start();
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

  it('obeys a stop in the middle of a stream at once and keeps the tokens', async () => {
    const { run, controlPlane, attempt, payloads, engines } = await start();
    engines.generate = streamUntilStopped([1, 2], () => attempt.stop('cut'));
    expect(await run()).toBe('aborted');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ reason: 'aborted', segment: { tokenCount: 2, attempt: 1 } });
    expect(payloads.json(fail!.segment!.ref)).toMatchObject({ tokenIds: [1, 2] });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'aborted', tokens: 2 });
  });

  it.each([
    ['the engine has answered', [errorOf('ENGINE_ERROR'), errorOf('ENGINE_UNREACHABLE')], 3],
    ['nothing listens there any more', [errorOf('ENGINE_ERROR'), REFUSED, errorOf('ENGINE_ERROR')], 2],
  ] as const)('keeps its lease and says nothing until %s', async (_, errors, calls) => {
    const { run, controlPlane, attempt, engines } = await start();
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
    const { run, controlPlane, attempt, engines } = await start();
    engines.abortErrors.push(...Array.from({ length: refusals }, () => errorOf('ENGINE_ERROR')));
    engines.generate = (_, { onTokens, onUnstopped }) => {
      onTokens!({ tokenIds: [5, 6], text: 'de', tokenCount: 2 });
      onUnstopped!();
      return Promise.reject(errorOf('ENGINE_STALLED'));
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

  it('stops when the answer to a checkpoint says so', async () => {
    const { run, controlPlane, engines } = await start();
    controlPlane.on('request.checkpoint', () => ({ action: 'abort' }));
    engines.generate = streamUntilStopped([1]);
    expect(await run()).toBe('aborted');
  });

  it('saves its tokens from time to time, payload first, and keeps one payload of the attempt', async () => {
    const { run, controlPlane, payloads, engines, attempt } = await start(undefined, { checkpointIntervalMs: 10 });
    const complete: string[] = [];
    controlPlane.on('request.checkpoint', ({ segment }) => {
      if (segment !== undefined) complete.push(String(payloads.payloads.has(segment.ref)));
      return { action: 'continue' };
    });
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    engines.generate = async (_, { onTokens }) => {
      for (const round of [1, 2, 3]) {
        onTokens!({ tokenIds: [round], text: 'x', tokenCount: 1 });
        await expect.poll(() => complete).toHaveLength(round);
      }
      await released;
      return { tokenIds: [1, 2, 3], text: 'xxx', tokenCount: 3, finishReason: 'length' };
    };
    const running = run();
    await expect.poll(() => payloads.namesOf('j/g/0')).toEqual(['1.3']);
    release();
    expect(await running).toBe('finished');
    expect(complete).toEqual(['true', 'true', 'true']);
    expect(attempt.savedRefs).toHaveLength(1);
    expect(payloads.namesOf('j/g/0')).toEqual(['1.3']);
  });

  it('ends with one slow checkpoint, however many fell due meanwhile', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { run, controlPlane, engines } = await start(undefined, { checkpointIntervalMs: 10 });
      let fail: () => void = () => undefined;
      const slow = new Promise<never>((_, reject) => (fail = () => reject(errorOf('VALIDATION_FAILED'))));
      controlPlane.on('request.checkpoint', () => slow);
      engines.generate = async (_, { onTokens }) => {
        onTokens!({ tokenIds: [1], text: 'x', tokenCount: 1 });
        await expect.poll(() => controlPlane.of('request.checkpoint').length).toBe(1);
        vi.advanceTimersByTime(1_000);
        fail();
        return { tokenIds: [1], text: 'x', tokenCount: 1, finishReason: 'stop' };
      };
      expect(await run()).toBe('finished');
      expect(controlPlane.of('request.checkpoint')).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it('keeps the tokens when the engine dies in mid-stream, and says that the server failed', async () => {
    const { run, controlPlane, engines } = await start();
    engines.generate = async (_, { onTokens }) => {
      onTokens!({ tokenIds: [5, 6], text: 'de', tokenCount: 2 });
      throw errorOf('ENGINE_ERROR');
    };
    expect(await run()).toBe('engine-error');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({
      reason: 'engine-error',
      retryable: true,
      segment: { tokenCount: 2 },
    });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'failed', tokens: 2 });
  });

  it('does not count an engine that cannot be reached as a failure, and holds its lease for a while', async () => {
    const { run, controlPlane, engines, attempt, leases } = await start(undefined, { engineFailurePauseMs: 60_000 });
    engines.generate = () => Promise.reject(errorOf('ENGINE_UNREACHABLE'));
    const running = run();
    await expect.poll(() => leases.count).toBe(1);
    expect(controlPlane.of('lb.release')).toEqual([]);
    attempt.stop('cut');
    expect(await running).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'failed' });
  });

  it('does not repeat what the engine refused', async () => {
    const { run, controlPlane, engines } = await start();
    engines.generate = () => Promise.reject(errorOf('ENGINE_REJECTED'));
    expect(await run()).toBe('engine-rejected');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'engine-rejected', retryable: false });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'rejected' });
  });

  it('says nothing more about an attempt that is not its own', async () => {
    const { run, controlPlane } = await start();
    controlPlane.on('request.complete', () => {
      throw errorOf('FENCED');
    });
    expect(await run()).toBe('fenced');
    expect(controlPlane.of('request.fail')).toEqual([]);
  });

  it('drops a fenced epoch without a word', async () => {
    const { run, controlPlane, engines, module, leases } = await start();
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

  it('repeats the end until it is taken', async () => {
    const { run, controlPlane, payloads } = await start();
    payloads.putErrors.push(errorOf('PAYLOAD_STORE_FULL'), errorOf('UNAVAILABLE'));
    let tries = 0;
    controlPlane.on('request.complete', () => {
      if (++tries < 3) throw errorOf('TIMEOUT');
      return { state: 'finished', groupAccepted: true, roundCompleted: true };
    });
    expect(await run()).toBe('finished');
    expect(tries).toBe(3);
  });

  it('hands the request back when its tokens cannot be stored', async () => {
    const { run, controlPlane, payloads } = await start(undefined, { transitionDeadlineMs: 40 });
    for (let count = 0; count < 20; count++) payloads.putErrors.push(errorOf('PAYLOAD_STORE_FULL'));
    expect(await run()).toBe('payload');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ reason: 'payload', retryable: true });
    expect(fail!.segment).toBeUndefined();
  });

  it('completes even when the load-balancer does not answer the release', async () => {
    const { run, controlPlane, leases } = await start();
    controlPlane.on('lb.release', () => new Promise(() => undefined));
    expect(await run()).toBe('finished');
    expect(leases.count).toBe(1);
  });

  it('stores before it completes, and releases before it completes', async () => {
    const { run, controlPlane, payloads } = await start();
    setFailpoints('worker.complete.between-release-and-complete=throw');
    await run();
    expect(payloads.namesOf('j/g/0')).toEqual(['1.3']);
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'finished' });
    expect(controlPlane.of('request.complete')).toEqual([]);
  });

  it('counts a defect of ours as a failure and keeps no lease, so that nothing is run again for ever', async () => {
    const { run, controlPlane, leases, registry } = await start();
    setFailpoints('worker.complete.between-payload-and-complete=throw');
    expect(await run()).toBe('engine-error');
    expect(controlPlane.of('request.fail')).toMatchObject([{ reason: 'engine-error', retryable: true }]);
    await expect.poll(() => [leases.count, leases.digest, registry.size]).toEqual([0, 0, 0]);
  });
});
