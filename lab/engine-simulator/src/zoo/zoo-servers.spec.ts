import { createEngineAdapter, engineRequestId } from '@broomwagon/engines';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inEngine, selectZoo, startEngine } from '../test-engine';
import { ZOO } from './zoo';
import { detectEngine } from '../../../../libs/engines/src/detect-engine';

const RESTARTS = ZOO.filter(({ server }) => server?.restart !== undefined).map(({ name }) => name);

type Engine = Awaited<ReturnType<typeof startEngine>>;

let attempts = 0;
const request = (maxTokens = 8_192) => ({
  engineRequestId: engineRequestId('server', `${++attempts}`),
  prompt: { text: 'x' },
  maxTokens,
});

describe.each(['vllm', 'sglang'] as const)('%s', (dialect) => {
  let engine: Engine;
  beforeEach(async () => {
    engine = await startEngine(dialect, { lengths: { name: 'test', getLength: () => 4_000 }, speed: 10 });
  });
  afterEach(() => engine.close());

  it.each(RESTARTS)('%s is another start of the engine, and ends its requests', async (name) => {
    const before = await detectEngine(engine.url);
    const running = before.adapter.generate(request());
    await expect.poll(() => inEngine(engine.url)).toBe(1);
    await selectZoo(engine.url, { entries: [name] });
    await expect(running).rejects.toMatchObject({ code: 'ENGINE_ERROR', retryable: true });
    const after = await detectEngine(engine.url);
    expect(after.instanceId).not.toBe(before.instanceId);
    expect(await inEngine(engine.url)).toBe(0);
    if (name === 'restart-other-kv-size') {
      const size = (found: typeof after) => found.capabilities.maxModelTokens!;
      expect([after.model, size(after) < size(before)]).toEqual(['simulated', true]);
      return;
    }
    expect(after.model).toBe('other-model');
    expect(after.adapter.dialect === dialect).toBe(name === 'restart-other-model');
    // An adapter for the former model gets no answer from the other model.
    const old = createEngineAdapter(dialect, engine.url, { model: 'simulated' });
    const outcome = await old.generate(request(2)).catch((error: { code: string }) => error.code);
    if (name === 'port-reused' || dialect === 'vllm') expect(outcome).toMatch(/^ENGINE_/);
  });

  it('stale-metrics reports the load at its start', async () => {
    const { adapter } = await detectEngine(engine.url);
    await selectZoo(engine.url, { entries: ['stale-metrics'] });
    const stop = new AbortController();
    const running = adapter.generate(request(), { signal: stop.signal });
    await expect.poll(() => inEngine(engine.url)).toBe(1);
    expect((await adapter.report()).load).toMatchObject({ running: 0 });
    await selectZoo(engine.url, { entries: [] });
    expect((await adapter.report()).load).toMatchObject({ running: 1 });
    stop.abort();
    await running;
  });

  it('unhealthy-while-streaming cuts no stream', async () => {
    const { adapter } = await detectEngine(engine.url);
    const running = adapter.generate(request(200));
    await selectZoo(engine.url, { entries: ['unhealthy-while-streaming'] });
    await expect(adapter.health()).rejects.toMatchObject({ code: 'ENGINE_ERROR' });
    expect(await running).toMatchObject({ finishReason: 'length', tokenCount: 200 });
  });

  it.each(['aborts-ignored', 'closes-unnoticed'])('%s leaves nothing in the engine after a stop', async (name) => {
    await selectZoo(engine.url, { entries: [name], standsAt: 1 });
    const stop = new AbortController();
    const options = { signal: stop.signal, onTokens: () => stop.abort() };
    expect(await createEngineAdapter(dialect, engine.url).generate(request(), options)).toMatchObject({
      finishReason: 'aborted',
    });
    await expect.poll(() => inEngine(engine.url)).toBe(0);
  });
});
