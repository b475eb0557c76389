import type { EngineDialect } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectZoo, startEngine } from './test-engine';

type Engine = Awaited<ReturnType<typeof startEngine>>;
type Body = Record<string, unknown>;

/** Routes that take an interval, with the body that asks for it. */
const ROUTES: Record<string, [EngineDialect, string, (interval: unknown) => Body]> = {
  completions: ['vllm', '/v1/completions', (interval) => ({ ...COMPLETION, stream_interval: interval })],
  chats: [
    'vllm',
    '/v1/chat/completions',
    (interval) => ({
      ...COMPLETION,
      prompt: undefined,
      messages: [{ role: 'user', content: 'raw' }],
      stream_interval: interval,
    }),
  ],
  tokens: [
    'vllm',
    '/inference/v1/generate',
    (interval) => ({
      ...COMPLETION,
      prompt: undefined,
      token_ids: [5, 6],
      sampling_params: { max_tokens: 64, seed: 3, stream_interval: interval },
    }),
  ],
  generate: [
    'sglang',
    '/generate',
    (interval) => ({
      text: 'raw',
      stream: true,
      sampling_params: { max_new_tokens: 64, sampling_seed: 3, stream_interval: interval },
    }),
  ],
};
const COMPLETION = { prompt: 'raw', max_tokens: 64, seed: 3, stream: true, return_token_ids: true };
const LENGTH = 24;

const engines = new Map<string, Engine>();
const started = async (dialect: EngineDialect, streamInterval?: number): Promise<Engine> => {
  const lengths = { name: 'test', getLength: () => LENGTH };
  return startEngine(dialect, { lengths, streamMs: 0, scaleOut: true, ...(streamInterval && { streamInterval }) });
};
beforeAll(async () => {
  for (const dialect of ['vllm', 'sglang', 'openai'] as const) engines.set(dialect, await started(dialect));
  for (const dialect of ['vllm', 'sglang'] as const) engines.set(`${dialect} 10`, await started(dialect, 10));
});
afterAll(() => Promise.all([...engines.values()].map((engine) => engine.close())));

interface Answer {
  status: number;
  said: string;
  /** Token ids of each event that has some. */
  events: number[][];
  finishReason?: unknown;
}

async function ask(engine: Engine, path: string, body: Body): Promise<Answer> {
  const response = await fetch(`${engine.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  const said = await response.text();
  const events: number[][] = [];
  let finishReason: unknown;
  if (response.status === 200) {
    for (const line of said.split('\n\n').filter((one) => one.startsWith('data: {'))) {
      const event = JSON.parse(line.slice('data: '.length)) as {
        choices?: { token_ids?: number[]; finish_reason?: unknown }[];
        output_ids?: number[];
        meta_info?: { finish_reason: { type: string } | null };
      };
      const ids = event.output_ids ?? event.choices?.[0]?.token_ids ?? [];
      if (ids.length > 0) events.push(ids);
      finishReason = event.meta_info?.finish_reason?.type ?? event.choices?.[0]?.finish_reason ?? finishReason;
    }
  }
  return { status: response.status, said, events, finishReason };
}

const sizes = ({ events }: Answer): number[] => events.map(({ length }) => length);

describe.each(Object.entries(ROUTES))('%s', (_, [dialect, path, buildBody]) => {
  const own = (): Engine => engines.get(dialect)!;

  it('send the first token, then each interval, and at the end what is left', async () => {
    const answer = await ask(own(), path, buildBody(7));
    expect(sizes(answer)).toEqual([1, 7, 7, 7, 2]);
    const plain = await ask(own(), path, buildBody(undefined));
    expect(answer.events.flat()).toEqual(plain.events.flat());
    expect(answer.finishReason).toBe(plain.finishReason);
  });

  it('refuse a text, and numbers below 1 as their engine does', async () => {
    expect((await ask(own(), path, buildBody('7'))).status).toBe(400);
    for (const interval of [0, -3]) {
      expect((await ask(own(), path, buildBody(interval))).status).toBe(dialect === 'sglang' ? 200 : 400);
    }
  });

  it('name all fields with wrong values in a refusal', async () => {
    const body = buildBody('wrong');
    if (body.sampling_params === undefined) body.temperature = 'wrong';
    else Object.assign(body.sampling_params as Body, { temperature: 'wrong' });
    const { said } = await ask(own(), path, body);
    expect(said).toContain('temperature');
    expect(said).toContain('stream_interval');
  });

  it('send a response that the interval exceeds in two events', async () => {
    expect(sizes(await ask(own(), path, buildBody(1_000_000_000)))).toEqual([1, LENGTH - 1]);
  });

  it('take the larger of field and setting on vLLM, and the field on SGLang', async () => {
    const set = engines.get(`${dialect} 10`)!;
    expect(sizes(await ask(set, path, buildBody(undefined)))).toEqual([1, 10, 10, 3]);
    expect(sizes(await ask(set, path, buildBody(20)))).toEqual([1, 20, 3]);
    expect(sizes(await ask(set, path, buildBody(5)))).toEqual(
      dialect === 'sglang' ? [1, 5, 5, 5, 5, 3] : [1, 10, 10, 3],
    );
  });

  it('keep the interval with other behaviours', async () => {
    await selectZoo(own().url, { entries: ['two-final-chunks'] });
    expect(sizes(await ask(own(), path, buildBody(7)))).toEqual([1, 7, 7, 7, 2]);
    await selectZoo(own().url, { entries: [] });
  });

  it('of releases without the field ignore, refuse or fail (interval-ignored, interval-refused, interval-failed)', async () => {
    const outcomes: unknown[] = [];
    for (const name of ['interval-ignored', 'interval-refused', 'interval-failed']) {
      await selectZoo(own().url, { entries: [name] });
      const answer = await ask(own(), path, buildBody(7));
      outcomes.push(answer.status === 200 ? Math.max(...sizes(answer)) !== 7 : answer.status);
      expect((await ask(own(), path, buildBody(undefined))).status).toBe(200);
    }
    await selectZoo(own().url, { entries: [] });
    expect(outcomes).toEqual([true, 400, 500]);
  });
});

it('OpenAI routes of SGLang and other servers ignore the field', async () => {
  for (const dialect of ['sglang', 'openai']) {
    const answer = await ask(engines.get(dialect)!, '/v1/completions', { ...COMPLETION, stream_interval: 'any' });
    expect(answer.status).toBe(200);
  }
});
