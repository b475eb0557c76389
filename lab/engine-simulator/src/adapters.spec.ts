import { createEngineAdapter, engineRequestId, type GenerationRequest } from '@broomwagon/engines';
import type { EngineDialect, Prompt } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSimulator } from './simulator';
import { inEngine, inject, startEngine, fetchState } from './test-engine';
import { detectEngine } from '../../../libs/engines/src/detect-engine';

const text: Prompt = { text: 'Natalia sold clips to 48 of her friends.' };
const messages: Prompt = { messages: [{ role: 'user', content: 'How many clips?' }] };
const tokenIds: Prompt = { promptTokenIds: [5, 6, 7, 151_000] };

let attempts = 0;
function attempt(prompt: Prompt, more: Partial<GenerationRequest> = {}): GenerationRequest {
  const engineId = engineRequestId('job/group/0', `${++attempts}`);
  return { engineRequestId: engineId, prompt, maxTokens: 8_192, sampling: { seed: 3 }, ...more };
}

const cases: { name: string; dialect: EngineDialect; prompts: Prompt[]; cumulative?: boolean }[] = [
  { name: 'vllm', dialect: 'vllm', prompts: [tokenIds, text, messages] },
  { name: 'sglang, incremental', dialect: 'sglang', prompts: [tokenIds, text, messages] },
  { name: 'sglang, cumulative', dialect: 'sglang', prompts: [tokenIds, text], cumulative: true },
  { name: 'openai', dialect: 'openai', prompts: [text, messages] },
];

describe.each(cases)('$name adapter and simulator', ({ dialect, prompts, cumulative = false }) => {
  let simulator: RunningSimulator & { url: string };

  beforeAll(async () => {
    simulator = await startEngine(dialect, { cumulative });
  });
  afterEach(async () => {
    expect(await inEngine(simulator.url)).toBe(0);
    expect((await fetchState(simulator.url)).resumeMismatches).toBe(0);
  });
  afterAll(() => simulator.close());

  it('is detected with its capabilities', async () => {
    const { adapter, model, instanceId, capabilities } = await detectEngine(`${simulator.url}/v1/`);
    expect(adapter.dialect).toBe(dialect);
    expect(model).toBe('simulated');
    const own = dialect !== 'openai';
    expect(capabilities).toMatchObject({
      tokenIdsIn: own,
      tokenIdsOut: own,
      logprobs: true,
      abortById: own,
      abortOnDisconnect: true,
      loadReport: own,
      prefixCacheReset: own,
      tokenize: own,
      pauseModes: { vllm: ['abort', 'wait', 'keep'], sglang: ['abort', 'keep'], openai: [] }[dialect],
      dataParallelRanks: 1,
      maxModelTokens: own ? 131_072 : undefined,
    });
    expect(typeof instanceId).toBe(own ? 'string' : 'undefined');
    await adapter.health();
  });

  it.skipIf(dialect === 'sglang')('is refused when it does not serve the requested model', async () => {
    await expect(detectEngine(simulator.url, { model: 'other' })).rejects.toMatchObject({
      code: 'ENGINE_REJECTED',
      message: expect.stringMatching(/does not serve the model other; it serves simulated/) as string,
    });
  });

  it.each(prompts)('streams %j to its end, in increments that add up', async (prompt) => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const seen = { text: '', tokenCount: 0, tokenIds: [] as number[], logprobs: 0 };
    const result = await adapter.generate(attempt(prompt, { sampling: { seed: 3, logprobs: true } }), {
      onTokens: (increment) => {
        seen.text += increment.text;
        seen.tokenCount += increment.tokenCount;
        seen.tokenIds.push(...(increment.tokenIds ?? []));
        seen.logprobs += increment.logprobs?.length ?? 0;
      },
    });
    expect(result.finishReason).toBe('stop');
    expect(result.text).toBe(seen.text);
    expect(result.usage?.completionTokens).toBe(result.text.trim().split(' ').length);
    expect(result.logprobs?.length ?? 0).toBe(seen.logprobs);
    if (result.tokenIds) {
      expect(seen.tokenIds).toEqual(result.tokenIds);
      expect(result.tokenIds.length).toBe(result.tokenCount);
    }
    if (dialect !== 'openai') expect(seen.tokenCount).toBe(result.usage?.completionTokens);
  });

  it.each(prompts)('resumes %j anywhere to the same response as uncut', async (prompt) => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const uncut = await adapter.generate(attempt(prompt));
    const total = uncut.usage!.completionTokens;
    for (const cutAt of [1, 2, Math.floor(total / 2), total - 1]) {
      const first = await adapter.generate(attempt(prompt, { maxTokens: cutAt }));
      expect(first.finishReason).toBe('length');
      const made = { text: first.text, tokenIds: first.tokenIds, tokenCount: cutAt };
      const rest = await adapter.generate(attempt(prompt, { made, sampling: {} }));
      expect(rest.finishReason).toBe('stop');
      // An engine that returns the token ids of responses is also asked for the ids of the prompt.
      expect(rest.resumedBy).toBe(uncut.tokenIds ? 'tokens' : 'text');
      expect(first.text + rest.text).toBe(uncut.text);
      if (uncut.tokenIds) expect([...first.tokenIds!, ...rest.tokenIds!]).toEqual(uncut.tokenIds);
    }
  });

  it('keeps the tokens of an aborted attempt, leaves nothing in the engine, and continues from there', async () => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const prompt = prompts[0]!;
    const uncut = await adapter.generate(attempt(prompt));
    const cut = new AbortController();
    // Without the stall, the whole response may be in the first read of a process that has waited for a core.
    await inject(simulator.url, { kind: 'stall', afterTokens: 4 });
    const first = await adapter.generate(attempt(prompt), { signal: cut.signal, onTokens: () => cut.abort() });
    expect(first.finishReason).toBe('aborted');
    expect(first.tokenCount).toBeGreaterThan(0);
    await expect.poll(() => inEngine(simulator.url)).toBe(0);
    const tokenCount = first.text.trim().split(' ').length;
    const rest = await adapter.generate(
      attempt(prompt, { made: { text: first.text, tokenIds: first.tokenIds, tokenCount } }),
    );
    expect(first.text + rest.text).toBe(uncut.text);
  });

  it('sends no request to the engine when the budget is used up or the signal has fired', async () => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const before = (await fetchState(simulator.url)).requests.received;
    const full = attempt(prompts[0]!, { maxTokens: 3, made: { tokenIds: [1, 2, 3], text: ' a b c', tokenCount: 3 } });
    expect(await adapter.generate(full)).toMatchObject({ finishReason: 'length', tokenCount: 0 });
    const aborted = await adapter.generate(attempt(prompts[0]!), { signal: AbortSignal.abort() });
    expect(aborted).toMatchObject({ finishReason: 'aborted', tokenCount: 0 });
    expect((await fetchState(simulator.url)).requests.received).toBe(before);
  });
});

describe.each(['vllm', 'sglang'] as const)('%s adapter and engine', (dialect) => {
  let simulator: RunningSimulator & { url: string };
  beforeAll(async () => {
    simulator = await startEngine(dialect, { speed: 2 });
  });
  afterAll(() => simulator.close());

  it.each([text, messages])('stop one of two requests by id; the other one continues: %j', async (prompt) => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const [one, other] = [attempt(prompt), attempt(prompt)];
    const end = new AbortController();
    const running = [adapter.generate(one), adapter.generate(other, { signal: end.signal })];
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 2, waiting: 0 });
    expect(await adapter.abort(one.engineRequestId)).toBe(true);
    expect(await running[0]).toMatchObject({ finishReason: 'aborted' });
    expect((await adapter.report()).load?.running).toBe(1);
    expect(await adapter.abort(engineRequestId('unknown', '1'))).toBe(true);
    expect((await adapter.report()).load?.running).toBe(1);
    end.abort();
    expect(await running[1]).toMatchObject({ finishReason: 'aborted' });
    await expect.poll(() => inEngine(simulator.url)).toBe(0);
  });

  it('close sessions on an engine whose cache counts them, and nowhere else', async () => {
    const keeping = await startEngine(dialect, { sessionCache: true });
    const counts = dialect === 'sglang';
    for (const { url, closes } of [
      { url: keeping.url, closes: counts },
      { url: simulator.url, closes: false },
    ]) {
      const { adapter, capabilities } = await detectEngine(url);
      expect(capabilities.sessionClose ?? false).toBe(closes);
      for (const sessionId of ['a', 'b']) await adapter.generate(attempt(text, { sessionId, maxTokens: 2 }));
      expect((await fetchState(url)).sessions).toEqual({ open: closes ? ['a', 'b'] : [], closed: 0 });
      if (!counts) await expect(adapter.closeSession('a')).rejects.toMatchObject({ code: 'ENGINE_REJECTED' });
      else for (let repeat = 0; repeat < 2; repeat++) await adapter.closeSession('a');
      expect((await fetchState(url)).sessions).toEqual({ open: closes ? ['b'] : [], closed: closes ? 1 : 0 });
    }
    await keeping.close();
  });

  it('pause with requests ended or kept, queue new requests meanwhile, and resume', async () => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    const end = new AbortController();
    const kept = adapter.generate(attempt(text), { signal: end.signal });
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 1 });
    await adapter.pause('keep');
    await adapter.pause('keep');
    await expect(adapter.resetPrefixCache()).rejects.toMatchObject({ code: 'ENGINE_ERROR' });
    const late = adapter.generate(attempt(text), { signal: end.signal });
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 1, waiting: 1 });
    await adapter.resume();
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 2, waiting: 0 });
    await adapter.pause('abort');
    expect(await Promise.all([kept, late])).toMatchObject([{ finishReason: 'aborted' }, { finishReason: 'aborted' }]);
    await adapter.resetPrefixCache();
    await adapter.resume();
    end.abort();
  });

  it('pause after running requests have ended, or refuse this mode', async () => {
    const adapter = createEngineAdapter(dialect, simulator.url);
    if (dialect === 'sglang') {
      await expect(adapter.pause('wait')).rejects.toMatchObject({ code: 'ENGINE_REJECTED' });
      return;
    }
    const end = new AbortController();
    const running = adapter.generate(attempt(text), { signal: end.signal });
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 1 });
    await expect(adapter.pause('wait', 50)).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
    const paused = adapter.pause('wait');
    end.abort();
    await paused;
    await running;
    await adapter.resume();
  });

  it('end a request whose connection is closed without an abort', async () => {
    const gone = new AbortController();
    const answer = await fetch(`${simulator.url}/v1/completions`, {
      method: 'POST',
      body: JSON.stringify({ prompt: 'x', stream: true }),
      signal: gone.signal,
    });
    expect(answer.status).toBe(200);
    expect(await inEngine(simulator.url)).toBe(1);
    gone.abort();
    await expect.poll(() => inEngine(simulator.url)).toBe(0);
  });
});

it('an adapter holds 2,000 streams of one engine, and stops one of them by id', { timeout: 240_000 }, async () => {
  const simulator = await startEngine('vllm', { speed: 0.01 });
  const adapter = createEngineAdapter('vllm', simulator.url);
  const end = new AbortController();
  const requests = Array.from({ length: 2_000 }, () => attempt(text));
  const running = requests.map((request) => adapter.generate(request, { signal: end.signal }));
  await expect.poll(() => inEngine(simulator.url), { timeout: 120_000, interval: 250 }).toBe(2_000);
  expect(await adapter.abort(requests[1_000]!.engineRequestId)).toBe(true);
  expect(await running[1_000]).toMatchObject({ finishReason: 'aborted' });
  expect(await inEngine(simulator.url)).toBe(1_999);
  end.abort();
  const ends = await Promise.all(running);
  expect(ends.every(({ finishReason }) => finishReason === 'aborted')).toBe(true);
  await expect.poll(() => inEngine(simulator.url)).toBe(0);
  await simulator.close();
});
