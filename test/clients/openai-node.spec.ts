import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { inject } from '../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';

const completion = { model: 'simulated', prompt: 'How many clips?', max_tokens: 8, seed: 7 };
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'How many clips?' }];
let bench: ServiceBench;
let gateway: Gateway;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 60);
});
afterAll(() => bench?.close());
beforeEach(async () => {
  await bench.begin(() => 8_000, 20, 'vllm');
  await bench.register({ model: 'simulated' });
  gateway = await Gateway.start(bench.prefix, bench.pool, { engineStallTimeoutMs: 3_000, rejoinMs: 120_000 });
});
afterEach(async () => {
  await gateway.close();
  await bench.engine.close();
  expect(await bench.findings()).toEqual([]);
});

const createClient = (options: object = {}, path = '/v1') =>
  new OpenAI({ baseURL: `${gateway.url}${path}`, apiKey: 'none', ...options });

it('repeats a request that was answered 503', async () => {
  let calls = 0;
  const unavailableOnce: typeof fetch = (input, init) => {
    calls += 1;
    const refusal = new Response('{"error":{"message":"busy"}}', { status: 503, headers: { 'retry-after-ms': '1' } });
    return calls === 1 ? Promise.resolve(refusal) : fetch(input, init);
  };
  const answer = await createClient({ fetch: unavailableOnce }).completions.create(completion);
  expect([calls, answer.choices[0]!.finish_reason]).toEqual([2, 'length']);
});

it('repeats a request after its own timeout, and joins the generation that runs', async () => {
  const whole = await createClient().completions.create(completion);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  const defaultHeaders = { 'X-Session-ID': 's' };
  const client = createClient({ timeout: 1_000, maxRetries: 50, defaultHeaders });
  const answer = await client.completions.create(completion);
  expect(answer.choices[0]!.text).toBe(whole.choices[0]!.text);
  expect(await gateway.metric('gateway_joined_total')).toBeGreaterThan(0);
});

it('joins the generation that runs with both of its repeats', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  let calls = 0;
  const brokenTwice: typeof fetch = async (input, init) => {
    calls += 1;
    if (calls > 2) return fetch(input, init);
    const cut = new AbortController();
    const sent = fetch(input, { ...init, signal: cut.signal }).catch(() => undefined);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBeGreaterThanOrEqual(3);
    if (calls === 2) await expect.poll(() => gateway.metric('gateway_joined_total')).toBe(1);
    cut.abort();
    await sent;
    throw new TypeError('The connection broke');
  };
  const client = createClient({ fetch: brokenTwice, defaultHeaders: { 'X-Session-ID': 's' } });
  const answer = await client.completions.create(completion);
  expect([calls, answer.choices[0]!.finish_reason, answer.usage!.completion_tokens]).toEqual([3, 'length', 8]);
  expect(await gateway.metric('gateway_joined_total')).toBe(2);
});

it.each([
  ['too many choices', 'n', { n: 10_000 }],
  ['a context that is too long', null, { max_tokens: 200_000 }],
])('gets an error of %s as its own class', async (_, param, options) => {
  const wrong = createClient({ maxRetries: 0 }).completions.create({ ...completion, ...options });
  await expect(wrong).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  await expect(wrong).rejects.toMatchObject({ status: 400, param });
});

it('speaks chat, and its trajectory has the tokens of its turns', async () => {
  const { session_id: id, path } = (await gateway.post('/sessions', {})).body;
  const client = createClient({}, path);
  const first = await client.chat.completions.create({ model: 'simulated', messages, max_tokens: 6, seed: 7 });
  expect(first.choices[0]!.finish_reason).toBe('length');
  const stream = await client.chat.completions.create({
    model: 'simulated',
    messages: [...messages, first.choices[0]!.message, { role: 'user', content: 'Again.' }],
    max_tokens: 5,
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  expect(text).not.toBe('');
  const { branches, missing } = (await gateway.get(`/sessions/${id}/trajectory`)).body;
  expect(missing).toEqual([]);
  const turns = branches.flatMap(
    (branch: { turns: { turn: number; response_start: number; end: number }[] }) => branch.turns,
  );
  const lengths = new Map(turns.map((turn: (typeof turns)[number]) => [turn.turn, turn.end - turn.response_start]));
  expect([...lengths.entries()].toSorted()).toEqual([
    [1, 6],
    [2, 5],
  ]);
  for (const { loss_mask: mask, logprobs } of branches) {
    expect(logprobs.map((one: number) => (one === 0 ? 0 : 1))).toEqual(mask);
  }
});
