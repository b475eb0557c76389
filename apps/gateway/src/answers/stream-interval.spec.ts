import { describe, expect, it } from 'vitest';
import { fetchState, inject, selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, parseEvents, type Reply } from '../../../../test/system/gateway';
import { generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

const HEADER = 'x-broomwagon-stream-interval';
const TOKENS = 24;
const MESSAGES = [{ role: 'user', content: 'p' }];

const WRONG: unknown[] = [0, -1, '8', 1.5, 1_000_000_000, true];
const WRONG_HEADERS = ['0', '-1', 'eight', '1000000000'];

describe('vllm', () => {
  const system = useGateway(4, {
    dialect: 'vllm',
    tokens: TOKENS,
    speed: 100,
    engine: { streamMs: 0, scaleOut: true },
    gateway: { streamInterval: 16 },
  });

  /** Interval that the engine was asked for in the last request. */
  async function asked(path: string, body: object, headers?: Record<string, string>): Promise<number> {
    const { status } = await system.gateway.post(path, body, headers);
    expect(status).toBe(200);
    return (await fetchState(system.bench.engine.url)).table[0]!.streamInterval;
  }

  const completion = { prompt: [5, 6], max_tokens: 500, seed: 3 };
  const tokens = { token_ids: [5, 6], sampling_params: { max_tokens: 500, seed: 3 } };

  it('asks for the interval of header, body, pool or gateway, and for single tokens in streams', async () => {
    expect(await asked('/v1/completions', completion)).toBe(16);
    expect(await asked('/v1/completions', { ...completion, stream: true })).toBe(1);
    expect(await asked('/inference/v1/generate', tokens)).toBe(16);
    for (const stream of [false, true]) {
      expect(await asked('/v1/completions', { ...completion, stream }, { [HEADER]: '7' })).toBe(7);
      expect(await asked('/v1/completions', { ...completion, stream, stream_interval: 5 })).toBe(5);
      expect(await asked('/v1/completions', { ...completion, stream, stream_interval: 5 }, { [HEADER]: '7' })).toBe(5);
    }
    const own = { ...tokens, sampling_params: { ...tokens.sampling_params, stream_interval: 5 } };
    expect(await asked('/inference/v1/generate', own)).toBe(5);
    const { client, pool } = system.bench;
    await client.call(pool, 'pool.configure', { streamInterval: 32 });
    expect(await asked('/v1/completions', completion)).toBe(32);
    await client.call(pool, 'pool.configure', { reset: ['streamInterval'] });
    expect(await asked('/v1/completions', completion)).toBe(16);
  });

  it('asks for larger events of a chat that the engine parses only for its client', async () => {
    const chat = { messages: MESSAGES, max_tokens: 500, seed: 3 };
    expect(await asked('/v1/chat/completions', chat)).toBe(1);
    expect(await asked('/v1/chat/completions', { ...chat, stream_interval: 5 })).toBe(5);
    expect(await asked('/v1/chat/completions', chat, { [HEADER]: '7' })).toBe(7);
  });

  it('refuses wrong intervals, with their field', async () => {
    const refusal = async (path: string, body: object, headers?: Record<string, string>) => {
      const { status, body: answer } = await system.gateway.post(path, body, headers);
      const { type, param } = (answer as { error: { type: string; param: string } }).error;
      return [status, type, param];
    };
    for (const wrong of WRONG) {
      const field = { stream_interval: wrong };
      const expected = [400, 'VALIDATION_FAILED', 'stream_interval'];
      expect(await refusal('/v1/completions', { ...completion, ...field })).toEqual(expected);
      expect(await refusal('/v1/chat/completions', { messages: MESSAGES, ...field })).toEqual(expected);
      const sampling = { ...tokens.sampling_params, ...field };
      expect(await refusal('/inference/v1/generate', { ...tokens, sampling_params: sampling })).toEqual([
        400,
        'VALIDATION_FAILED',
        'sampling_params.stream_interval',
      ]);
    }
    for (const wrong of WRONG_HEADERS) {
      const expected = [400, 'VALIDATION_FAILED', HEADER];
      expect(await refusal('/v1/completions', completion, { [HEADER]: wrong })).toEqual(expected);
    }
  });

  it('answers the same by an engine that ignores, refuses or fails at the field', async () => {
    const whole = await system.gateway.post('/v1/completions', { ...completion, stream_interval: 1 });
    for (const name of ['interval-ignored', 'interval-refused', 'interval-failed', 'whole-at-once']) {
      await selectZoo(system.bench.engine.url, { entries: [name] });
      const { client, pool } = system.bench;
      // Another start of the engine is probed again.
      await client.call(pool, 'server.remove', { serverId: 's1' });
      await system.registerFirst({ instanceId: name });
      for (const fields of [{}, { stream_interval: 5 }]) {
        const { status, body } = await system.gateway.post('/v1/completions', { ...completion, ...fields });
        expect(status).toBe(200);
        expect((body as { choices: unknown }).choices).toEqual((whole.body as { choices: unknown }).choices);
      }
    }
  });
});

describe('sglang', () => {
  const system = useGateway(2, {
    tokens: TOKENS,
    speed: 100,
    engine: { streamMs: 0, streamInterval: 10 },
    gateway: { streamInterval: 16 },
  });
  const body = (more: object = {}) => ({
    input_ids: [5, 6],
    sampling_params: { max_new_tokens: 500, sampling_seed: 3, ...more },
  });

  it('asks `/generate` for the interval, also for a chat that the gateway renders', async () => {
    const asked = async (path: string, sent: object): Promise<number> => {
      const { status } = await system.gateway.post(path, sent);
      expect(status).toBe(200);
      return (await fetchState(system.bench.engine.url)).table[0]!.streamInterval;
    };
    expect(await asked('/generate', body())).toBe(16);
    expect(await asked('/generate', body({ stream_interval: 5 }))).toBe(5);
    // Without a field, the engine's own interval counts.
    expect(await asked('/generate', { ...body(), stream: true })).toBe(10);
    expect(await asked('/generate', { ...body({ stream_interval: 1 }), stream: true })).toBe(1);
    const sampling = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 };
    const chat = { messages: MESSAGES, max_tokens: 500, seed: 3, ...sampling };
    expect(await asked('/v1/chat/completions', chat)).toBe(16);
    expect(await asked('/v1/chat/completions', { ...chat, stream_interval: 5 })).toBe(5);
  });

  it('refuses wrong intervals, with their field', async () => {
    for (const wrong of WRONG) {
      const { status, body: answer } = await system.gateway.post('/generate', body({ stream_interval: wrong }));
      expect(status).toBe(400);
      const { param } = (answer as { error: { param: string } }).error;
      expect(param).toBe('sampling_params.stream_interval');
    }
  });
});

describe('a call that continues a stream after the death of its engine', () => {
  const system = useGateway(2);

  it.each([
    ['asks for the interval once the stream is old enough', 1, 64],
    ['asks for single tokens before', 120_000, 1],
  ])('%s', async (_, streamBurstsAfterMs, interval) => {
    const { prefix, pool, engine } = system.bench;
    const gateway = await Gateway.start(prefix, pool, { streamBurstsAfterMs });
    await inject(engine.url, { kind: 'stall', afterTokens: 6 });
    const reply = gateway.post('/generate', generate(LONG, { stream: true }));
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(6);
    expect((await fetchState(engine.url)).table[0]!.streamInterval).toBe(1);
    await system.registerSecond();
    await engine.close();
    const events = parseEvents((await reply).body) as Reply['body'][];
    expect((await fetchState(system.second.url)).table[0]!.streamInterval).toBe(interval);
    expect(events.at(-2).output_ids).toEqual((await system.uncut(LONG)).body.output_ids);
    await gateway.close();
  });
});
