import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BroomwagonError, type Prompt, type SaveItem } from '@broomwagon/contracts';
import { sampleSeed } from '@broomwagon/engines';
import { UndeliveredError } from '@broomwagon/messaging';
import { setFailpoints } from '../../../../libs/platform/src/failpoint';
import { createError, LEASE, WORKER } from '../worker.fixture';
import { identity, startAttempt } from './attempt.fixture';
import { AttemptRegistry } from './attempt-registry';
import { AttemptRunner } from './attempt-runner';

describe('AttemptRunner', () => {
  afterEach(() => setFailpoints(''));

  it('runs a request: acquire, partial save, generate, store, release, complete', async () => {
    const { run, controlPlane, payloads, engines, leases, registry, attempt } = await startAttempt(() => ({
      sampling: { temperature: 1 },
    }));
    expect(await run()).toBe('finished');
    expect(engines.requests[0]).toMatchObject({
      prompt: { promptTokenIds: [10, 11] },
      // No seed unless the trainer sets one: an engine then draws other random numbers for every request.
      sampling: { temperature: 1 },
      maxTokens: 100,
    });
    const [complete] = controlPlane.of('request.complete');
    expect(complete).toMatchObject({ ...identity, finishReason: 'stop' });
    expect(complete!.segment).toMatchObject({ serverId: 's1', serverEpoch: 'e2', weightVersion: 5, tokenCount: 3 });
    expect(payloads.json(complete!.segment!.ref)).toEqual({ tokenIds: [1, 2, 3], text: 'abc' });
    const acquire = controlPlane.of('lb.acquire')[0]!;
    expect(acquire).toMatchObject({ ...WORKER, acquireId: attempt.acquireId, requestId: 'j/g/0', groupId: 'j/g' });
    expect(acquire.attempt).toBe(identity.attempt);
    expect(controlPlane.of('lb.release')).toEqual([
      { leaseId: `7.${attempt.acquireId}`, outcome: 'finished', tokens: 3 },
    ]);
    expect([leases.count, leases.digest, registry.size]).toEqual([0, 0, 0]);
  });

  it('continues from the tokens of earlier attempts, cut to their counts', async () => {
    const { run, engines, payloads, attempt } = await startAttempt();
    const ref1 = await payloads.put(
      { pool: 'default', job: 'j', owner: 'j/g/0', name: '1.2' },
      Buffer.from('{"tokenIds":[1,2],"text":"ab"}'),
    );
    const ref2 = await payloads.put(
      { pool: 'default', job: 'j', owner: 'j/g/0', name: '2.1' },
      Buffer.from('{"tokenIds":[3,99],"text":"c"}'),
    );
    const segment = { serverId: 's', serverEpoch: 'e1', weightVersion: 1 };
    attempt.claim.segments.push(
      { ...segment, attempt: '1-a', tokenCount: 2, ref: ref1 },
      { ...segment, attempt: '2-a', tokenCount: 1, ref: ref2 },
    );
    expect(await run()).toBe('finished');
    expect(engines.requests[0]!.made).toEqual({ tokenIds: [1, 2, 3], text: 'abc', tokenCount: 3 });
    expect(payloads.listNames('j/g/0')).toEqual(['1.2', '2.1', `${attempt.worker.workerEpoch}.1-a.3`]);
  });

  it('reports the missing segment of an earlier attempt, and the request keeps the others', async () => {
    const { run, controlPlane, payloads, attempt } = await startAttempt();
    const name = (part: string) => ({ pool: 'default', job: 'j', owner: 'j/g/0', name: part });
    const refs: string[] = [];
    for (const part of ['1', '2', '3']) refs.push(await payloads.put(name(part), Buffer.from('{"tokenIds":[1]}')));
    for (const [index, ref] of refs.entries()) {
      const made = { serverId: 's', serverEpoch: 'e1', weightVersion: 1, tokenCount: 1 };
      attempt.claim.segments.push({ ...made, attempt: `${index + 1}-a`, ref });
    }
    payloads.payloads.delete(refs[1]!);
    payloads.payloads.delete(refs[2]!);
    await run();
    expect(controlPlane.of('request.fail')).toMatchObject([
      { reason: 'payload', retryable: true, missingRef: refs[1] },
    ]);
  });

  it.each([
    ['that the disk cannot read', (): Error => createError('UNAVAILABLE')],
    ['whose error has no type', () => new Error('EIO: i/o error, read')],
  ])('reports a segment %s, not its request', async (_, error) => {
    const { run, controlPlane, payloads, attempt } = await startAttempt(undefined, { transitionDeadlineMs: 1 });
    const ref = await payloads.put({ pool: 'default', job: 'j', owner: 'j/g/0', name: '1' }, Buffer.from('{}'));
    const made = { serverId: 's', serverEpoch: 'e1', weightVersion: 1, tokenCount: 1 };
    attempt.claim.segments.push({ ...made, attempt: '1-a', ref });
    payloads.getErrors.set(ref, error());
    await run();
    expect(controlPlane.of('request.fail')).toMatchObject([{ reason: 'payload', retryable: true, missingRef: ref }]);
  });

  it('reports an untyped error of the payload store as retryable, from reads and from writes', async () => {
    const reading = await startAttempt();
    reading.payloads.getErrors.set(reading.attempt.claim.promptRef, new Error('EMFILE: too many open files'));
    await reading.run();
    const writing = await startAttempt();
    writing.payloads.putErrors.push(...Array.from({ length: 9 }, () => new Error('EROFS: read-only file system')));
    await writing.run();
    for (const { controlPlane } of [reading, writing]) {
      expect(controlPlane.of('request.fail')).toMatchObject([{ reason: 'payload', retryable: true }]);
    }
  });

  it('derives from the seed of the trainer another seed for each sample and each position where a sample resumes', async () => {
    const seeds: (number | undefined)[] = [];
    for (const [groupId, sampleIndex, madeTokens] of [
      ['g', 0, 0],
      ['g', 0, 0],
      ['g', 1, 0],
      ['h', 0, 0],
      ['g', 0, 2],
    ] as const) {
      const { run, engines, payloads, attempt } = await startAttempt(() => ({
        groupId,
        sampleIndex,
        sampling: { seed: 100 },
      }));
      if (madeTokens > 0) {
        const ref = await payloads.put(
          { pool: 'default', job: 'j', owner: 'j/g/0', name: '1.2' },
          Buffer.from('{"tokenIds":[1,2],"text":"ab"}'),
        );
        const segment = { attempt: '1-a', serverId: 's', serverEpoch: 'e1', weightVersion: 1 };
        attempt.claim.segments.push({ ...segment, tokenCount: madeTokens, ref });
      }
      await run();
      seeds.push(engines.requests[0]!.sampling!.seed);
      expect(seeds.at(-1)).toBe(sampleSeed(100, { job: 'j', groupId, sampleIndex, madeTokens }));
    }
    expect(seeds[1]).toBe(seeds[0]);
    expect(new Set(seeds).size).toBe(4);
  });

  it('completes at once, without a server, when the budget is used up', async () => {
    const { run, attempt, payloads, controlPlane } = await startAttempt(() => ({ maxTokens: 2 }));
    const ref = await payloads.put(
      { pool: 'default', job: 'j', owner: 'j/g/0', name: '1.2' },
      Buffer.from('{"tokenIds":[1,2]}'),
    );
    attempt.claim.segments.push({
      attempt: '1-a',
      serverId: 's',
      serverEpoch: 'e1',
      weightVersion: 1,
      tokenCount: 2,
      ref,
    });
    expect(await run()).toBe('finished');
    expect(controlPlane.calls).toEqual([
      { operation: 'request.complete', body: { ...identity, finishReason: 'length' } },
    ]);
  });

  it('fails a request whose prompt is missing, for good', async () => {
    const { run, controlPlane } = await startAttempt(() => ({ promptRef: 'redis~default~j~g~other' }));
    expect(await run()).toBe('payload');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'payload', retryable: false });
    expect(controlPlane.of('lb.acquire')).toEqual([]);
  });

  it.each<Prompt>([
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }] },
    { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'c' }] }] },
    { text: 'a', engineFields: { lora_path: 'l' } },
  ])('gives the engine a prompt as the OpenAI API takes it: %j', async (prompt) => {
    const { run, engines, payloads, attempt } = await startAttempt();
    payloads.payloads.set(attempt.claim.promptRef, Buffer.from(JSON.stringify(prompt)));
    expect(await run()).toBe('finished');
    expect(engines.requests[0]!.prompt).toEqual(prompt);
  });

  it.each(['{"text":5}', '{"messages":"hi"}', '{"messages":[null]}', '{"text":"a","promptTokenIds":[1]}', '{}', '[]'])(
    'fails a request whose prompt payload is %s, for good',
    async (payload) => {
      const { run, controlPlane, payloads, attempt } = await startAttempt();
      payloads.payloads.set(attempt.claim.promptRef, Buffer.from(payload));
      expect(await run()).toBe('payload');
      expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'payload', retryable: false });
      expect(controlPlane.of('lb.acquire')).toEqual([]);
    },
  );

  it('repeats its acquire with one acquireId until a server is granted', async () => {
    const { run, controlPlane } = await startAttempt();
    const answers = ['WAIT_TIMEOUT', 'TIMEOUT', 'NO_SERVER_AVAILABLE'] as const;
    let asked = 0;
    controlPlane.on('lb.acquire', ({ acquireId }) => {
      const code = answers[asked++];
      if (code !== undefined) throw createError(code);
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await run()).toBe('finished');
    expect(new Set(controlPlane.of('lb.acquire').map(({ acquireId }) => acquireId)).size).toBe(1);
  });

  it('leaves a server that takes text only, and requires token ids from then on', async () => {
    const { run, controlPlane, engines, claim, module } = await startAttempt();
    controlPlane.on('lb.acquire', ({ acquireId, needs }) => {
      const dialect = needs?.includes('tokenIdsIn') ? 'vllm' : 'openai';
      return { ...LEASE, leaseId: `7.${acquireId}`, dialect };
    });
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    await expect.poll(() => controlPlane.of('lb.release')).toHaveLength(1);
    expect(engines.requests).toEqual([]);
    const again = module.get(AttemptRegistry).admit(claim({ attempt: '2-a' }), WORKER)!;
    expect(await module.get(AttemptRunner).run(again)).toBe('finished');
    expect(controlPlane.of('lb.acquire').map(({ needs }) => needs)).toEqual([undefined, ['tokenIdsIn']]);
  });

  it('runs nothing on older weights than its round has, and requires the version from then on', async () => {
    const { run, controlPlane, engines, claim, module } = await startAttempt();
    controlPlane.on('lb.acquire', ({ acquireId, minWeightVersion }) => {
      return { ...LEASE, leaseId: `7.${acquireId}`, weightVersion: minWeightVersion ?? 4 };
    });
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    await expect.poll(() => controlPlane.of('lb.release')).toMatchObject([{ outcome: 'aborted' }]);
    expect(engines.requests).toEqual([]);
    const again = module.get(AttemptRegistry).admit(claim({ attempt: '2-a' }), WORKER)!;
    expect(await module.get(AttemptRunner).run(again)).toBe('finished');
    expect(controlPlane.of('lb.acquire').map(({ minWeightVersion }) => minWeightVersion)).toEqual([undefined, 5]);
  });

  it('gives payloads of two attempts different names, also when a Redis that was set back repeats an attempt number', async () => {
    const { run, controlPlane, claim, module } = await startAttempt();
    await run();
    for (const [attempt, workerEpoch] of [
      ['1-b', WORKER.workerEpoch],
      ['1-a', 'another'],
    ] as const) {
      const again = module.get(AttemptRegistry).admit(claim({ attempt }), { ...WORKER, workerEpoch })!;
      await module.get(AttemptRunner).run(again);
    }
    const refs = controlPlane.of('request.complete').map(({ segment }) => segment!.ref);
    expect(new Set(refs).size).toBe(3);
  });

  it('fails a request whose acquire is refused, instead of asking for ever', async () => {
    const { run, controlPlane } = await startAttempt();
    controlPlane.on('lb.acquire', () => {
      throw createError('VALIDATION_FAILED');
    });
    expect(await run()).toBe('engine-rejected');
    expect(controlPlane.of('lb.acquire')).toHaveLength(1);
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'engine-rejected', retryable: false });
  });

  it('reports an answer in a wrong dialect as evidence about the engine', async () => {
    const { run, controlPlane, engines } = await startAttempt();
    engines.generate = () => Promise.reject(createError('ENGINE_PROTOCOL'));
    expect(await run()).toBe('engine-rejected');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'engine-rejected', retryable: true });
    await expect.poll(() => controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'failed' });
  });

  it('gives up without a server after its deadline and leaves a tombstone for a late grant', async () => {
    const { run, controlPlane, attempt, leases } = await startAttempt(undefined, { noServerDeadlineMs: 30 });
    controlPlane.on('lb.acquire', () => {
      throw createError('NO_SERVER_AVAILABLE');
    });
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    await expect
      .poll(() => controlPlane.of('lb.release'))
      .toEqual([{ acquireId: attempt.acquireId, outcome: 'aborted' }]);
    await expect.poll(() => leases.knows(`7.${attempt.acquireId}`)).toBe(false);
  });

  it('keeps asking while the pool is paused, and does not count that time for its deadline', async () => {
    const { run, controlPlane } = await startAttempt(undefined, { noServerDeadlineMs: 50 });
    let asked = 0;
    controlPlane.on('lb.acquire', async ({ acquireId }) => {
      // Longer than the deadline in total, like acquires that wait.
      await delay(30);
      if (asked++ < 3) throw createError('POOL_PAUSED');
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await run()).toBe('finished');
    expect(controlPlane.of('request.fail')).toEqual([]);
  });

  it('waits for KV memory until the deadline of such waits, not until the deadline for pools without servers', async () => {
    const kvFull = new BroomwagonError('WAIT_TIMEOUT', 'full', { details: { reason: 'kv-full' } });
    const waited = await startAttempt(undefined, { noServerDeadlineMs: 50 });
    let asked = 0;
    waited.controlPlane.on('lb.acquire', async ({ acquireId }) => {
      // Longer than the deadline for pools without servers in total.
      await delay(30);
      if (asked++ < 3) throw kvFull;
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    expect(await waited.run()).toBe('finished');
    const ended = await startAttempt(undefined, { kvWaitDeadlineMs: 30 });
    ended.controlPlane.on('lb.acquire', async () => {
      await delay(20);
      throw kvFull;
    });
    expect(await ended.run()).toBe('no-server');
    expect(ended.controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', message: 'full' });
  });

  it('saves its new tokens from time to time, payload first, and stores all tokens at its end', async () => {
    const { run, controlPlane, payloads, engines, attempt } = await startAttempt(undefined, {
      partialSaveIntervalMs: 10,
    });
    const complete: string[] = [];
    controlPlane.on('request.save', ({ segment }) => {
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
    const names = [1, 2, 3].map((tokens) => `${attempt.worker.workerEpoch}.1-a.${tokens}`);
    await expect.poll(() => payloads.listNames('j/g/0')).toEqual(names);
    release();
    expect(await running).toBe('finished');
    expect(complete).toEqual(['true', 'true', 'true']);
    const saved = controlPlane.of('request.save-many').flatMap(({ saves }) => saves);
    const pieces = saved.filter(({ segment }) => segment !== undefined);
    expect(pieces.map(({ savedTokens = 0 }) => savedTokens)).toEqual([0, 1, 2]);
    expect(pieces.map(({ segment }) => payloads.json(segment!.ref))).toMatchObject(
      [1, 2, 3].map((id) => ({ tokenIds: [id], text: 'x' })),
    );
    // The end has another name: a payload never changes, and the coordinator removes payloads that are no longer
    // needed.
    expect(payloads.listNames('j/g/0')).toEqual([...names, names[2]]);
  });

  it('saves all its tokens with a message of its own while no coordinator knows messages of several saves', async () => {
    const { run, controlPlane, payloads, engines } = await startAttempt(undefined, { partialSaveIntervalMs: 10 });
    let isKnown = false;
    const made: unknown[] = [];
    controlPlane.on('request.save', ({ segment }) => {
      if (segment !== undefined) made.push((payloads.json(segment.ref) as { tokenIds: number[] }).tokenIds);
      return { action: 'continue' };
    });
    controlPlane.on('request.save-many', ({ saves }) => {
      if (!isKnown) throw new UndeliveredError('UNAVAILABLE', 'No service handles it');
      const [{ segment, savedTokens = 0 }] = saves as [SaveItem];
      if (segment !== undefined) made.push([savedTokens, payloads.json(segment.ref)]);
      return { results: [{ action: 'continue', savedTokens: savedTokens + (segment?.tokenCount ?? 0) }] };
    });
    engines.generate = async (_, { onTokens }) => {
      for (const round of [1, 2, 3]) {
        isKnown = round === 3;
        onTokens!({ tokenIds: [round], text: 'x', tokenCount: 1 });
        await expect.poll(() => made).toHaveLength(round);
      }
      return { tokenIds: [1, 2, 3], text: 'xxx', tokenCount: 3, finishReason: 'length' };
    };
    expect(await run()).toBe('finished');
    expect(made).toMatchObject([[1], [1, 2], [2, { tokenIds: [3], text: 'x' }]]);
  });

  it('begins again where the partial save ends, or from the start', async () => {
    const { run, controlPlane, payloads, engines } = await startAttempt(undefined, { partialSaveIntervalMs: 10 });
    // The answers after each save: taken, Redis was set back to the first save, taken, and a number that no save had.
    const answers = [1, 2, 1, 3, 77, 4];
    const pieces: unknown[] = [];
    controlPlane.on('request.save-many', ({ saves }) => {
      const [{ segment, savedTokens = 0 }] = saves as [SaveItem];
      if (segment === undefined) return { results: [{ action: 'continue', savedTokens: 0 }] };
      pieces.push([savedTokens, (payloads.json(segment.ref) as { tokenIds: number[] }).tokenIds]);
      return { results: [{ action: 'continue', savedTokens: answers[pieces.length - 1]! }] };
    });
    engines.generate = async (_, { onTokens }) => {
      for (const [token, count] of [1, 2, 4, 6].entries()) {
        onTokens!({ tokenIds: [token], text: 'x', tokenCount: 1 });
        await expect.poll(() => pieces.length).toBeGreaterThanOrEqual(count);
      }
      return { tokenIds: [0, 1, 2, 3], text: 'xxxx', tokenCount: 4, finishReason: 'length' };
    };
    expect(await run()).toBe('finished');
    expect(pieces.slice(0, 6)).toEqual([
      [0, [0]],
      [1, [1]],
      [2, [2]],
      [1, [1, 2]],
      [3, [3]],
      [0, [0, 1, 2, 3]],
    ]);
  });

  it('ends with one slow partial save, however many fell due meanwhile', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { run, controlPlane, engines } = await startAttempt(undefined, { partialSaveIntervalMs: 10 });
      let fail: () => void = () => undefined;
      const slow = new Promise<never>((_, reject) => (fail = () => reject(createError('VALIDATION_FAILED'))));
      controlPlane.on('request.save', () => slow);
      engines.generate = async (_, { onTokens }) => {
        onTokens!({ tokenIds: [1], text: 'x', tokenCount: 1 });
        await expect.poll(() => controlPlane.of('request.save').length).toBe(1);
        vi.advanceTimersByTime(1_000);
        fail();
        return { tokenIds: [1], text: 'x', tokenCount: 1, finishReason: 'stop' };
      };
      expect(await run()).toBe('finished');
      expect(controlPlane.of('request.save')).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it('keeps the tokens when the engine dies in mid-stream, and reports a failure of the server', async () => {
    const { run, controlPlane, engines } = await startAttempt();
    engines.generate = async (_, { onTokens }) => {
      onTokens!({ tokenIds: [5, 6], text: 'de', tokenCount: 2 });
      throw createError('ENGINE_ERROR');
    };
    expect(await run()).toBe('engine-error');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({
      reason: 'engine-error',
      retryable: true,
      segment: { tokenCount: 2 },
    });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'failed', tokens: 2 });
  });

  it.each([
    ['ENGINE_UNREACHABLE', undefined],
    ['ENGINE_BUSY', 5_000],
  ] as const)('counts %s as no failure: the server gets no leases for a while', async (code, retryAfterMs) => {
    const { run, controlPlane, engines } = await startAttempt(() => ({ avoidServers: ['s2'] }));
    engines.generate = () => Promise.reject(new BroomwagonError(code, 'busy', { retryAfterMs }));
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('lb.acquire')[0]).toMatchObject({ avoidServers: ['s2'] });
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'no-server', retryable: true });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'busy', retryAfterMs });
  });

  it('works with a load-balancer that knows neither busy engines nor servers to avoid', async () => {
    const { run, controlPlane, engines } = await startAttempt(() => ({ avoidServers: ['s2'] }));
    const refuse = (isKnown: boolean): void => {
      if (!isKnown) throw new BroomwagonError('VALIDATION_FAILED', 'property should not exist');
    };
    controlPlane.on('lb.acquire', ({ acquireId, avoidServers }) => {
      refuse(avoidServers === undefined);
      return { ...LEASE, leaseId: `7.${acquireId}` };
    });
    controlPlane.on('lb.release', ({ outcome }) => {
      refuse(outcome !== 'busy');
      return { released: true, reason: 'released' };
    });
    engines.generate = () => Promise.reject(createError('ENGINE_BUSY'));
    expect(await run()).toBe('no-server');
    expect(controlPlane.of('lb.release').map(({ outcome }) => outcome)).toEqual(['busy', 'aborted']);
  });

  it('releases the lease at once and pauses longer, the more attempts of the request have failed in a row', async () => {
    const { run, controlPlane, engines, attempt } = await startAttempt(() => ({ setbacks: 9 }), {
      engineFailurePauseMs: 60_000,
    });
    engines.generate = () => Promise.reject(createError('ENGINE_ERROR'));
    const running = run();
    await expect.poll(() => controlPlane.of('lb.release')).toHaveLength(1);
    expect(controlPlane.of('request.fail')).toEqual([]);
    attempt.stop('cut');
    expect(await running).toBe('engine-error');
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'failed' });
  });

  it.each([0, 2])(
    'keeps %i tokens of a request that the engine stops by itself, and counts no failure',
    async (count) => {
      const { run, controlPlane, engines } = await startAttempt();
      engines.generate = async (_, { onTokens }) => {
        if (count > 0) onTokens!({ tokenIds: [5, 6], text: 'de', tokenCount: count });
        return { tokenIds: [5, 6], text: 'de', tokenCount: count, finishReason: 'aborted' };
      };
      expect(await run()).toBe('engine-abort');
      const [fail] = controlPlane.of('request.fail');
      expect(fail).toMatchObject({ reason: 'engine-abort', retryable: true });
      expect(fail!.segment?.tokenCount).toBe(count > 0 ? count : undefined);
      expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'aborted', tokens: count });
    },
  );

  it('does not repeat a request that the engine refused', async () => {
    const { run, controlPlane, engines } = await startAttempt();
    engines.generate = () => Promise.reject(createError('ENGINE_REJECTED'));
    expect(await run()).toBe('engine-rejected');
    expect(controlPlane.of('request.fail')[0]).toMatchObject({ reason: 'engine-rejected', retryable: false });
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'rejected' });
  });

  it('reports nothing more about an attempt of another worker', async () => {
    const { run, controlPlane } = await startAttempt();
    controlPlane.on('request.complete', () => {
      throw createError('FENCED');
    });
    expect(await run()).toBe('fenced');
    expect(controlPlane.of('request.fail')).toEqual([]);
  });

  it('repeats the report of its end until it is accepted', async () => {
    const { run, controlPlane, payloads } = await startAttempt();
    payloads.putErrors.push(createError('PAYLOAD_STORE_FULL'), createError('UNAVAILABLE'));
    let tries = 0;
    controlPlane.on('request.complete', () => {
      if (++tries < 3) throw createError('TIMEOUT');
      return { state: 'finished', groupAccepted: true, roundCompleted: true };
    });
    expect(await run()).toBe('finished');
    expect(tries).toBe(3);
  });

  it.each(['INTERNAL', 'VALIDATION_FAILED'] as const)('reports unclaimed if its end is answered %s', async (code) => {
    const { run, controlPlane, engines } = await startAttempt();
    engines.generate = () => Promise.reject(createError('ENGINE_REJECTED'));
    controlPlane.on('request.fail', ({ reason }) => {
      if (reason !== 'unclaimed') throw createError(code);
      return { state: 'pending' };
    });
    expect(await run()).toBe('lost');
    const said = controlPlane.of('request.fail');
    expect(said.map(({ reason }) => reason)).toEqual([
      ...Array<string>(code === 'INTERNAL' ? 3 : 1).fill('engine-rejected'),
      'unclaimed',
    ]);
    expect(said.at(-1)).toEqual({ ...identity, reason: 'unclaimed', retryable: true });
  });

  it('stores its tokens again when they are lost before its end is accepted, and reports the new reference', async () => {
    for (const [losses, outcome] of [
      [2, 'finished'],
      [99, 'lost'],
    ] as const) {
      const { run, controlPlane, payloads } = await startAttempt();
      let left: number = losses;
      controlPlane.on('request.complete', ({ segment }) => {
        if (left-- <= 0) return { state: 'finished', groupAccepted: false, roundCompleted: false };
        payloads.payloads.delete(segment!.ref);
        throw new BroomwagonError('PAYLOAD_NOT_FOUND', 'lost');
      });
      expect(await run()).toBe(outcome);
      const refs = controlPlane.of('request.complete').map(({ segment }) => segment!.ref);
      expect(new Set(refs).size).toBe(refs.length);
      expect(refs).toHaveLength(Math.min(losses, 3) + 1);
      if (outcome === 'finished') expect(payloads.json(refs.at(-1)!)).toEqual({ tokenIds: [1, 2, 3], text: 'abc' });
      // The repeats end if the store keeps nothing, or is not the store of the coordinator.
      else expect(controlPlane.of('request.fail')).toMatchObject([{ ...identity, reason: 'unclaimed' }]);
    }
  });

  it('gives up an end that is always answered INTERNAL', async () => {
    const { run, controlPlane, registry } = await startAttempt();
    for (const operation of ['request.complete', 'request.fail'] as const) {
      controlPlane.on(operation, () => {
        throw createError('INTERNAL');
      });
    }
    expect(await run()).toBe('lost');
    expect([controlPlane.of('request.complete').length, controlPlane.of('request.fail').length]).toEqual([3, 3]);
    expect(registry.size).toBe(0);
  });

  it('cuts the error text of an engine between characters', async () => {
    const { run, controlPlane, engines } = await startAttempt();
    const said = `${'x'.repeat(998)}\ud83d😀😀`;
    engines.generate = () => Promise.reject(new BroomwagonError('ENGINE_REJECTED', said));
    await run();
    expect(controlPlane.of('request.fail')[0]!.message).toBe(`${'x'.repeat(998)}\ufffd😀`);
  });

  it('hands the request back when its tokens cannot be stored', async () => {
    const { run, controlPlane, payloads } = await startAttempt(undefined, { transitionDeadlineMs: 40 });
    for (let count = 0; count < 20; count++) payloads.putErrors.push(createError('PAYLOAD_STORE_FULL'));
    expect(await run()).toBe('payload-full');
    const [fail] = controlPlane.of('request.fail');
    expect(fail).toMatchObject({ reason: 'payload-full', retryable: true, lostTokens: expect.any(Number) });
    expect(fail!.lostTokens).toBeGreaterThan(0);
    expect(fail!.segment).toBeUndefined();
  });

  it('completes even when the load-balancer does not answer the release', async () => {
    const { run, controlPlane, leases } = await startAttempt();
    controlPlane.on('lb.release', () => new Promise(() => undefined));
    expect(await run()).toBe('finished');
    expect(leases.count).toBe(1);
  });

  it('stores before it completes, and releases before it completes', async () => {
    const { run, controlPlane, payloads } = await startAttempt();
    setFailpoints('worker.complete.between-release-and-complete=throw');
    await run();
    expect(payloads.listNames('j/g/0')).toHaveLength(1);
    expect(controlPlane.of('lb.release')[0]).toMatchObject({ outcome: 'finished' });
    expect(controlPlane.of('request.complete')).toEqual([]);
  });

  it('counts a defect as a failure and keeps no lease, so that no request runs again for ever', async () => {
    const { run, controlPlane, leases, registry } = await startAttempt();
    setFailpoints('worker.complete.between-payload-and-complete=throw');
    expect(await run()).toBe('engine-error');
    expect(controlPlane.of('request.fail')).toMatchObject([{ reason: 'engine-error', retryable: true }]);
    await expect.poll(() => [leases.count, leases.digest, registry.size]).toEqual([0, 0, 0]);
  });
});
