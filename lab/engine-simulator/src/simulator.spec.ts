import { responseLength, stepSeconds, LENGTH_PRESETS, ENGINE_PRESETS } from '@broomwagon/models';
import { createEngineAdapter, engineRequestId } from '@broomwagon/engines';
import { describe, expect, it } from 'vitest';
import { WallClock } from './engine/wall-clock';
import { inEngine, startEngine, fetchState } from './test-engine';
import { startSimulator } from './simulator';
import { lengthSource } from './tokens/length-source';

describe('engine simulator', () => {
  it('ends a response with its true length, or at the budget with `length`', async () => {
    const simulator = await startEngine('vllm');
    const adapter = createEngineAdapter('vllm', simulator.url);
    const run = (maxTokens: number) =>
      adapter.generate({
        engineRequestId: engineRequestId('r', `${maxTokens}`),
        prompt: { text: 'q' },
        maxTokens,
        sampling: { seed: 4 },
      });
    const { table } = await run(8_192).then(() => fetchState(simulator.url));
    const expected = responseLength(LENGTH_PRESETS['math-short-8k'], {
      seed: 1,
      promptKey: table[0]!.promptKey,
      sampleIndex: 4,
    });
    expect(table[0]).toMatchObject({ state: 'stop', made: expected, total: expected });
    expect(await run(expected)).toMatchObject({ finishReason: 'stop', tokenCount: expected });
    expect(await run(expected - 1)).toMatchObject({ finishReason: 'length', tokenCount: expected - 1 });
    await simulator.close();
  });

  it('takes the time that the engine model computes', async () => {
    const parameters = { ...ENGINE_PRESETS['7b-8k'], stepPerKvTokenSeconds: 0 };
    const simulator = await startEngine('vllm', { parameters });
    const adapter = createEngineAdapter('vllm', simulator.url);
    const result = await adapter.generate({
      engineRequestId: engineRequestId('t', '1'),
      prompt: { text: 'q' },
      maxTokens: 8_192,
    });
    const { busySeconds } = await fetchState(simulator.url);
    const expected = result.tokenCount * stepSeconds(parameters, 1, 0);
    expect(busySeconds).toBeCloseTo(expected, 2);
    await simulator.close();
  });

  it('has engines in lockstep take the time of the slowest', async () => {
    const tiers = { stepPerSequenceSeconds: 0.01, graphTiers: [1, 4] };
    const parameters = { ...ENGINE_PRESETS['7b-8k'], stepPerKvTokenSeconds: 0, ...tiers };
    const lengths = { name: 'short', getLength: () => 1_000 };
    const simulator = await startEngine('vllm', { engines: 2, lockstep: true, parameters, lengths });
    const [full, other] = simulator.servers.map(({ url }) => url) as [string, string];
    const generate = (url: string, index: number) =>
      createEngineAdapter('vllm', url).generate({
        engineRequestId: engineRequestId('l', `${index}`),
        prompt: { text: 'q' },
        maxTokens: 8_192,
        sampling: { seed: index },
      });
    await Promise.all([...[1, 2, 3].map((index) => generate(full, index)), generate(other, 4)]);
    // Without lockstep, the other engine would run its steps at tier 1.
    expect((await fetchState(other)).busySeconds).toBeGreaterThan(1_000 * stepSeconds(parameters, 1, 0) * 1.5);
    await simulator.close();
  });

  it.each(['vllm', 'sglang'] as const)(
    '%s continues a request of its KV store without its prefill',
    async (dialect) => {
      const lengths = { name: 'long', getLength: () => 4_000 };
      const parameters = { ...ENGINE_PRESETS['7b-8k'], stepPerKvTokenSeconds: 0, prefillTokensPerSecond: 1_000 };
      const secondsToContinue = async (bytesPerSecond?: number) => {
        const kvStore = bytesPerSecond && { bytesPerToken: 1_000, bytesPerSecond, setupSeconds: 0 };
        const simulator = await startEngine(dialect, { engines: 2, lengths, parameters, ...(kvStore && { kvStore }) });
        const [from, to] = simulator.servers.map(({ url }) => url) as [string, string];
        const request = { engineRequestId: engineRequestId('k', '1'), prompt: { text: 'q' }, sampling: { seed: 1 } };
        const { tokenIds } = await createEngineAdapter(dialect, from).generate({ ...request, maxTokens: 2_000 });
        const made = { tokenIds, tokenCount: 2_000, text: '' };
        await createEngineAdapter(dialect, to).generate({ ...request, made, maxTokens: 2_001 });
        const { busySeconds } = await fetchState(to);
        await simulator.close();
        return busySeconds;
      };
      // The prefill of 2,000 tokens at 1,000 per second, and one step.
      expect(await secondsToContinue()).toBeCloseTo(2, 1);
      expect(await secondsToContinue(10_000_000)).toBeCloseTo(0.2, 1);
      expect(await secondsToContinue(100_000)).toBeCloseTo(2, 1);
    },
  );

  it('hosts many engines, queues beyond the slots, and refuses requests that can never fit', async () => {
    const parameters = { ...ENGINE_PRESETS['7b-8k'], slots: 2 };
    const simulator = await startSimulator({
      engines: 3,
      dialect: 'vllm',
      model: 'm',
      parameters,
      lengths: lengthSource('math-short-8k', 1),
      speed: 0.01,
      host: '127.0.0.1',
      port: 0,
      tickMs: 5,
      streamMs: 10,
      maxModelTokens: 1_000,
      cumulative: false,
    });
    const [first, second] = simulator.servers.map(({ url }) => url);
    const adapter = createEngineAdapter('vllm', first!);
    const end = new AbortController();
    const running = [1, 2, 3].map((attempt) =>
      adapter.generate(
        { engineRequestId: engineRequestId('q', `${attempt}`), prompt: { text: 'q' }, maxTokens: 900 },
        { signal: end.signal },
      ),
    );
    await expect.poll(async () => (await adapter.report()).load).toMatchObject({ running: 2, waiting: 1 });
    expect(await inEngine(second!)).toBe(0);
    await expect(
      adapter.generate({ engineRequestId: engineRequestId('q', '4'), prompt: { text: 'q' }, maxTokens: 1_000 }),
    ).rejects.toMatchObject({ code: 'ENGINE_REJECTED' });
    end.abort();
    await Promise.all(running);
    await expect.poll(() => inEngine(first!)).toBe(0);
    await simulator.close();
  });

  it('answers a request that is not streamed', async () => {
    const simulator = await startEngine('vllm');
    const answer = await fetch(`${simulator.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }),
    });
    expect(await answer.json()).toMatchObject({
      choices: [{ finish_reason: 'length', message: { role: 'assistant' } }],
      usage: { completion_tokens: 5 },
    });
    await simulator.close();
  });

  it('takes another speed while it runs', async () => {
    const simulator = await startEngine('vllm', { speed: 0.001, lengths: { name: 'test', getLength: () => 300 } });
    const call = (path: string, body: object) =>
      fetch(`${simulator.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    const answer = call('/v1/completions', { prompt: 'hi', max_tokens: 300 });
    await expect.poll(() => inEngine(simulator.url)).toBe(1);
    expect((await call('/simulator/speed', { speed: 0 })).status).toBe(400);
    expect((await call('/simulator/speed', { speed: 1_000 })).status).toBe(200);
    expect(await (await answer).json()).toMatchObject({ usage: { completion_tokens: 300 } });
    expect(await (await fetch(`${simulator.url}/simulator/state`)).json()).toMatchObject({ speed: 1_000 });
    await simulator.close();
  });

  it('drops wall time that it could not keep up with, and reports its share', () => {
    const clock = new WallClock(100, 50, 0);
    expect(clock.step(40, true)).toBe(4);
    expect(clock.step(140, true)).toBe(5);
    expect(clock.lagShare).toBeCloseTo(50 / 140);
    expect(clock.step(1_140, false)).toBe(100);
    expect(clock.lagShare).toBeCloseTo(50 / 140);
  });
});
