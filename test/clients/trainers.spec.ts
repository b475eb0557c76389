import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inEngine, inject, startEngine } from '../../lab/engine-simulator/src/test-engine';
import { eventsOf, Gateway, open } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';

// Requests as the clients of the trainers send them, and what these clients read of the answers.
const PROMPT = [11, 12, 13];
let bench: ServiceBench;
let gateway: Gateway;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 60);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  await bench.engine.close();
  expect(await bench.findings()).toEqual([]);
});

async function begin(dialect: 'sglang' | 'vllm'): Promise<void> {
  await bench.begin(() => 8_000, 1, dialect);
  await bench.register({ dialect, model: 'simulated', capabilities: { maxModelTokens: 4_096 } });
  gateway = await Gateway.start(bench.prefix, bench.pool);
}

describe('slime', () => {
  beforeEach(() => begin('sglang'));

  const sampling = { max_new_tokens: 4, temperature: 1, top_p: 1, top_k: -1, stop: null, stop_token_ids: null };
  const flags = { skip_special_tokens: false, no_stop_trim: true, spaces_between_special_tokens: false };
  const generate = { input_ids: PROMPT, sampling_params: { ...sampling, ...flags }, return_logprob: true };

  it('reads tokens, log probabilities, finish reason and weight version of /generate', async () => {
    const { status, body } = await gateway.post('/generate', generate, { 'x-smg-routing-key': 'session' });
    const { output_token_logprobs: entries, finish_reason: reason, weight_version: version } = body.meta_info;
    expect([status, reason.type, version]).toEqual([200, 'length', '0']);
    expect(entries.map(([, id]: [number, number]) => id)).toEqual(body.output_ids);
    expect(typeof body.text).toBe('string');
  });

  it('reads a stream whose chunks have all tokens so far', async () => {
    const { body } = await gateway.post('/generate', { ...generate, stream: true });
    const events = eventsOf(body) as {
      meta_info: { output_token_logprobs: number[][]; finish_reason: object | null };
    }[];
    expect(events.at(-1)).toBeNull();
    const last = events.at(-2)!.meta_info;
    expect([last.output_token_logprobs.length, last.finish_reason]).toEqual([4, { type: 'length', length: 4 }]);
  });

  it('aborts what runs at the workers of the list, waits until nothing runs, and continues with the tokens', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
    const long = { ...generate, sampling_params: { ...generate.sampling_params, max_new_tokens: 6 } };
    const running = gateway.post('/generate', long);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(2);
    const { body: list } = await gateway.get('/workers');
    for (const { url } of list.workers) expect(url).toBe(gateway.url);
    expect((await gateway.post('/abort_request', { abort_all: true })).status).toBe(200);
    const partial = (await running).body;
    expect([partial.meta_info.finish_reason.type, partial.output_ids.length]).toEqual(['abort', 2]);
    await expect.poll(async () => (await gateway.get('/v1/loads?include=core')).body.loads[0].num_total_reqs).toBe(0);
    const rest = { ...sampling, ...flags, max_new_tokens: 4 };
    const input = { ...generate, input_ids: [...PROMPT, ...partial.output_ids], sampling_params: rest };
    expect((await gateway.post('/generate', input)).body.meta_info.completion_tokens).toBe(4);
  });

  it('registers and removes an engine', async () => {
    const engine = await startEngine('sglang', { speed: 1, lengths: { name: 'test', lengthOf: () => 8_000 } });
    const added = await gateway.post('/workers', { url: engine.url, worker_type: 'regular' });
    expect(added.status).toBe(202);
    const removed = await fetch(`${gateway.url}/workers/${encodeURIComponent(engine.url)}`, { method: 'DELETE' });
    expect(removed.status).toBe(202);
    await engine.close();
  });
});

describe('miles', () => {
  beforeEach(() => begin('sglang'));

  it('adds, lists and removes an engine by the older routes', async () => {
    const engine = await startEngine('sglang', { speed: 1, lengths: { name: 'test', lengthOf: () => 8_000 } });
    const query = `url=${encodeURIComponent(engine.url)}`;
    expect((await gateway.post(`/add_worker?${query}`, {})).body.status).toBe('success');
    expect((await gateway.get('/list_workers')).body.urls).toEqual([gateway.url]);
    expect((await gateway.post(`/remove_worker?${query}`, {})).status).toBe(200);
    await engine.close();
  });

  it('begins a session, sends its turns below it, reads its tokens, and deletes it', async () => {
    const { session_id: id } = (await gateway.post('/sessions', {})).body;
    const turn = { input_ids: PROMPT, sampling_params: { max_new_tokens: 3 }, return_logprob: true };
    const { body } = await gateway.post(`/sessions/${id}/generate`, turn);
    const { branches } = (await gateway.get(`/sessions/${id}/trajectory`)).body;
    expect(branches[0].token_ids).toEqual([...PROMPT, ...body.output_ids]);
    expect((await fetch(`${gateway.url}/sessions/${id}`, { method: 'DELETE' })).status).toBe(204);
  });

  it('aborts by a prefix of ids', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 1 });
    const body = { rid: 'adapter-1--7', input_ids: PROMPT, sampling_params: { max_new_tokens: 9 } };
    const running = gateway.post('/generate', body);
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(1);
    await gateway.post('/abort_request', { rid: 'adapter-1--', prefix: true });
    expect((await running).body.meta_info.finish_reason.type).toBe('abort');
  });
});

describe('SkyRL and prime-rl', () => {
  beforeEach(() => begin('vllm'));

  const sampling = { max_tokens: 5, temperature: 1, top_p: 1, logprobs: 0 };
  const more = { cache_salt: '17', priority: 0 };

  it('read tokens, log probabilities and usage of /inference/v1/generate', async () => {
    const body = { model: 'simulated', token_ids: PROMPT, sampling_params: sampling, ...more };
    const { status, body: answer } = await gateway.post('/inference/v1/generate', body, { 'x-session-id': 't1' });
    const [choice] = answer.choices;
    expect([status, choice.finish_reason, answer.usage.completion_tokens]).toEqual([200, 'length', 5]);
    expect(choice.token_ids).toHaveLength(5);
    expect(choice.logprobs.content.every(({ logprob }: { logprob: number }) => Number.isFinite(logprob))).toBe(true);
  });

  it('read the length of the context of /v1/models', async () => {
    const { data } = (await gateway.get('/v1/models')).body;
    expect(data).toMatchObject([{ id: 'simulated', object: 'model', max_model_len: 4_096 }]);
  });

  it('abort by closing the connection', async () => {
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 1 });
    const sent = open(`${gateway.url}/inference/v1/generate`, { token_ids: PROMPT, sampling_params: sampling });
    await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(1);
    sent.destroy();
    await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(0);
    await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
  });
});

describe('AReaL', () => {
  it('reads /generate of SGLang, and whether an aborted response is empty', async () => {
    await begin('sglang');
    expect((await gateway.get('/health')).status).toBe(200);
    const sampling = { max_new_tokens: 3, temperature: 1, top_k: -1, sampling_seed: 3, frequency_penalty: 0 };
    const body = { input_ids: PROMPT, image_data: [], sampling_params: sampling, return_logprob: true, stream: false };
    const { meta_info: meta } = (await gateway.post('/generate', body)).body;
    expect([meta.prompt_tokens, meta.completion_tokens, meta.finish_reason.type]).toEqual([3, 3, 'length']);
    expect(meta.output_token_logprobs).toHaveLength(3);
  });

  it('reads ids of tokens of /v1/completions of vLLM, without a model', async () => {
    await begin('vllm');
    const body = { prompt: PROMPT, max_tokens: 3, return_tokens_as_token_ids: true, logprobs: 0, temperature: 1 };
    const { status, body: answer } = await gateway.post('/v1/completions', { ...body, stream: false });
    const { tokens, token_logprobs: logprobs } = answer.choices[0].logprobs;
    expect([status, answer.choices[0].finish_reason]).toEqual([200, 'length']);
    for (const token of tokens) expect(token).toMatch(/^token_id:\d+$/);
    expect(logprobs.every((one: number) => one > -9_999)).toBe(true);
  });
});
