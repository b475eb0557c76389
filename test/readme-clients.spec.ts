import type { EngineDialect } from '@broomwagon/contracts';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { readmeLines, readmeSetting } from './clients/readme';
import { Gateway, post, type Reply } from './system/gateway';
import { ServiceBench } from './system/service-bench';

const PROMPT = [11, 12, 13];
const TOKENS = 20;
const LOGPROBS = Array.from({ length: TOKENS }, () => expect.any(Number) as number);
let bench: ServiceBench;
let gateway: Gateway;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 12);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  await bench.end();
});

/**
 * A gateway in front of one engine that has the model `my-model`, as in README.md.
 * @param isRegistered false: the client registers the engine
 */
async function start(dialect: EngineDialect, isRegistered = true): Promise<void> {
  await bench.begin(() => 8_000, 20, dialect, { model: 'my-model' });
  if (isRegistered) await bench.register({ model: 'my-model', dialect });
  gateway = await Gateway.start(bench.prefix, bench.pool);
}

const setting = (client: string, name: RegExp): string => readmeSetting(client, name, gateway.service.httpPort);

it.each(['sglang', 'vllm'] as const)('slime generates on %s, and aborts by way of /workers', async (dialect) => {
  await start(dialect);
  const router = `http://${setting('slime', /--sglang-router-ip/)}:${setting('slime', /--sglang-router-port/)}`;
  const sampling = { temperature: 1, top_p: 1, top_k: -1, max_new_tokens: TOKENS, stop: null, stop_token_ids: null };
  const asked = { sampling_params: { ...sampling, skip_special_tokens: false, no_stop_trim: true } };
  const { status, body } = await post(`${router}/generate`, { ...asked, input_ids: PROMPT, return_logprob: true });
  expect([status, typeof body.text, body.meta_info.finish_reason.type]).toEqual([200, 'string', 'length']);
  const logprobs = body.meta_info.output_token_logprobs as [number, number][];
  expect(logprobs.map(([logprob]) => logprob)).toEqual(LOGPROBS);
  expect(logprobs.map(([, id]) => id)).toEqual(body.output_ids);
  expect(body.meta_info.weight_version).toBe('0');
  const long = { sampling_params: { max_new_tokens: 8_000 }, input_ids: PROMPT, return_logprob: true };
  // With this policy slime sends the key of a session.
  expect(setting('slime', /--router-policy/)).toBe('consistent_hashing');
  const running = post(`${router}/generate`, long, { 'x-smg-routing-key': 'session' });
  await bench.made(1);
  const { workers } = (await (await fetch(`${router}/workers`)).json()) as { workers: { url: string }[] };
  expect(workers).toHaveLength(1);
  expect((await post(`${workers[0]!.url}/abort_request`, { abort_all: true })).status).toBe(200);
  expect((await running).body.meta_info.finish_reason.type).toBe('abort');
  const load = async () => {
    const answer = await fetch(`${workers[0]!.url}/v1/loads?include=core`);
    return ((await answer.json()) as { loads: { num_total_reqs: number }[] }).loads[0]!.num_total_reqs;
  };
  await expect.poll(load).toBe(0);
});

/** Sends the request of SkyRL and prime-rl, and checks the tokens of the answer. */
async function expectTokens(
  url: string,
  more: object,
  path = '/inference/v1/generate',
  ofClient: Record<string, string> = {},
): Promise<void> {
  const sampling = { max_tokens: TOKENS, temperature: 1, logprobs: 1 };
  const request = { token_ids: PROMPT, sampling_params: sampling, ...more };
  const headers = { 'x-session-id': 'trajectory', ...ofClient };
  const { status, body } = await post(`${url}${path}`, request, headers);
  expect([status, body.choices[0].finish_reason]).toEqual([200, 'length']);
  expect(body.choices[0].token_ids).toHaveLength(TOKENS);
  const content = body.choices[0].logprobs.content as { logprob: number }[];
  expect(content.map(({ logprob }) => logprob)).toEqual(LOGPROBS);
  expect(body.usage.completion_tokens).toBe(TOKENS);
}

it('SkyRL generates, ends sessions, pauses and resumes at one address', async () => {
  await start('vllm');
  const proxy = setting('SkyRL', /generator\.inference_engine\.external_proxy_url/);
  expect(setting('SkyRL', /generator\.inference_engine\.run_engines_locally/)).toBe('false');
  const model = setting('SkyRL', /generator\.inference_engine\.served_model_name/);
  await expectTokens(proxy, { model });
  await expectTokens(proxy, { model }, '/skyrl/v1/generate');
  const finished = await post(`${proxy}/finish_session?session_id=trajectory`, '');
  expect([finished.status, finished.body.finished]).toEqual([200, true]);
  const tokenized = await post(`${proxy}/tokenize`, { model, prompt: 'What is 1 + 1?' });
  expect([tokenized.status, tokenized.body.count]).toEqual([200, tokenized.body.tokens.length]);
  const completion = { model, prompt: PROMPT, max_tokens: TOKENS };
  expect((await post(`${proxy}/v1/completions`, completion)).body.usage.completion_tokens).toBe(TOKENS);
  expect((await post(`${proxy}/pause?mode=keep&clear_cache=false`, '')).status).toBe(200);
  expect((await bench.client.call(bench.pool, 'lb.status', {})).paused).toBeTruthy();
  expect((await post(`${proxy}/resume`, '')).status).toBe(200);
  await expectTokens(proxy, { model });
});

it('prime-rl generates with its cache salt, key and headers, and reads the length of the model', async () => {
  await start('vllm');
  const base = setting('prime-rl', /base_url/);
  expect(setting('prime-rl', /api_key_var/)).toMatch(/^\w+$/);
  const headers: Record<string, string> = { authorization: 'Bearer none' };
  for (const [, name, value] of setting('prime-rl', /headers/).matchAll(/([\w-]+) = "(.*?)"/g)) headers[name!] = value!;
  expect(headers).toHaveProperty('X-Broomwagon-Job');
  const request = { model: 'my-model', cache_salt: '3' };
  await expectTokens(base.replace(/\/v1$/, ''), request, '/inference/v1/generate', headers);
  const models = (await (await fetch(`${base}/models`)).json()) as { data: { id: string; max_model_len?: number }[] };
  expect(models.data).toContainEqual(expect.objectContaining({ id: 'my-model' }));
});

it.each(['sglang', 'vllm'] as const)('AReaL generates as on SGLang and as on vLLM; engine: %s', async (dialect) => {
  await start(dialect);
  const url = `http://${setting('AReaL', /export AREAL_LLM_SERVER_ADDRS/)}`;
  expect((await fetch(`${url}/health`)).status).toBe(200);
  const sampling = { max_new_tokens: TOKENS, temperature: 1, top_p: 1, stop_token_ids: [], frequency_penalty: 0 };
  const request = { input_ids: PROMPT, sampling_params: sampling, return_logprob: true, stream: false };
  const signal = AbortSignal.timeout(1_000 * Number(setting('AReaL', /rollout\.request_timeout/)));
  const answer = await fetch(`${url}/generate`, { method: 'POST', body: JSON.stringify(request), signal });
  const { meta_info: meta } = (await answer.json()) as Reply['body'];
  expect([meta.finish_reason.type, meta.prompt_tokens, meta.completion_tokens]).toEqual(['length', 3, TOKENS]);
  expect(meta.output_token_logprobs).toHaveLength(TOKENS);
  const asked = { prompt: PROMPT, max_tokens: TOKENS, temperature: 1, stream: false };
  const ofTokens = { return_tokens_as_token_ids: true, logprobs: 0 };
  const { choices } = (await post(`${url}/v1/completions`, { ...asked, ...ofTokens })).body;
  const { tokens, token_logprobs: logprobs } = choices[0].logprobs as { tokens: string[]; token_logprobs: number[] };
  expect(tokens.filter((token) => /^token_id:\d+$/.test(token))).toHaveLength(TOKENS);
  expect(logprobs).toEqual(LOGPROBS);
  const [, engines] = /^sglang:d(\d+)$/.exec(setting('AReaL', /rollout\.backend/))!;
  const group = { master_address: '127.0.0.1', master_port: '29500', group_name: 'weights', backend: 'nccl' };
  const path = dialect === 'sglang' ? '/init_weights_update_group' : '/areal_init_weights_update_group';
  const joined = await post(`${url}${path}`, { ...group, rank_offset: 1, world_size: Number(engines) + 1 });
  expect(joined.status).toBe(200);
});

it('an OpenAI agent chats, also as a stream', async () => {
  await start('vllm');
  const client = new OpenAI({
    baseURL: setting('OpenAI agents', /export OPENAI_BASE_URL/),
    apiKey: setting('OpenAI agents', /export OPENAI_API_KEY/),
    maxRetries: 0,
  });
  const chat = {
    model: setting('OpenAI agents', /export OPENAI_DEFAULT_MODEL/),
    messages: [{ role: 'user' as const, content: 'What is 1 + 1?' }],
    max_tokens: TOKENS,
  };
  const whole = await client.chat.completions.create(chat);
  expect([whole.choices[0]!.finish_reason, whole.usage?.completion_tokens]).toEqual(['length', TOKENS]);
  let text = '';
  for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  expect(text.length).toBeGreaterThan(0);
});

const listSessions = async () => (await bench.client.call(bench.pool, 'lb.sessions', {})).sessions;

it('vime registers its engine, generates, aborts until nothing runs, and removes the engine', async () => {
  await start('vllm', false);
  const router = `http://${setting('vime', /--vllm-router-ip/)}:${setting('vime', /--vllm-router-port/)}`;
  const { url } = bench.engine;
  expect((await post(`${router}/workers`, { url, worker_type: 'regular' })).status).toBe(202);
  await expectTokens(router, { model: 'my-model' });
  // With this policy vime sends the session of a sample.
  expect(setting('vime', /--router-policy/)).toBe('consistent_hash');
  expect(await listSessions()).toMatchObject([{ sessionId: 'trajectory' }]);
  const sampling = { max_tokens: 8_000, temperature: 1, top_p: 1, top_k: -1, logprobs: 1, skip_special_tokens: false };
  const long = { model: 'my-model', token_ids: PROMPT, sampling_params: sampling };
  const running = post(`${router}/inference/v1/generate`, long, { 'x-session-id': 'trajectory' });
  await bench.running(1);
  const { workers } = (await (await fetch(`${router}/workers`)).json()) as { workers: { url: string }[] };
  for (const worker of workers) expect((await post(`${worker.url}/abort_requests`, {})).status).toBe(200);
  expect((await running).body.choices[0].finish_reason).toBe('abort');
  const load = async () => {
    const answer = await fetch(`${workers[0]!.url}/load?include_inflight=true&inflight_limit=100`);
    return ((await answer.json()) as { server_load: number }).server_load;
  };
  await expect.poll(load).toBe(0);
  expect((await fetch(`${router}/workers/${encodeURIComponent(url)}`, { method: 'DELETE' })).status).toBe(202);
  await expect.poll(async () => (await bench.client.call(bench.pool, 'server.list', {})).servers).toEqual([]);
});

/** A turn of NeMo Gym: a chat with token ids, then the ids of its prompt, in the session of its header. */
async function playNemoGym(base: string, headers: Record<string, string>, more: object = {}): Promise<void> {
  const chat = { model: 'my-model', messages: [{ role: 'user', content: 'What is 1 + 1?' }] };
  const asked = { logprobs: true, top_logprobs: 0, return_tokens_as_token_ids: true, return_token_ids: true };
  const { status, body } = await post(
    `${base}/chat/completions`,
    { ...chat, ...asked, max_tokens: TOKENS, ...more },
    { 'x-session-id': 'trajectory', ...headers },
  );
  expect([status, body.choices[0].token_ids.length]).toEqual([200, TOKENS]);
  const content = body.choices[0].logprobs.content as { logprob: number }[];
  expect(content.map(({ logprob }) => logprob)).toEqual(LOGPROBS);
  const tokenized = await post(`${base.replace(/\/v1$/, '')}/tokenize`, chat, headers);
  expect(tokenized.body.tokens).toEqual(body.prompt_token_ids);
  expect(await listSessions()).toMatchObject([{ sessionId: 'trajectory' }]);
}

it('NeMo RL registers its engine at router_url, and NeMo Gym chats in sessions there', async () => {
  await start('vllm', false);
  const router = setting('NeMo RL', /env\.nemo_gym\.router_url/);
  expect((await fetch(`${router}/readiness`)).status).toBe(503);
  expect((await post(`${router}/workers`, { url: `${bench.engine.url}/v1` })).status).toBe(202);
  await expect.poll(async () => (await fetch(`${router}/readiness`)).status).toBe(200);
  // For the policy cache_aware of vllm-router, NeMo RL also has the session sent in the body.
  await playNemoGym(`${router}/v1`, {}, { session_params: { session_id: 'trajectory' } });
});

it('NeMo Gym chats in sessions at its policy_base_url', async () => {
  await start('vllm');
  const authorization = `Bearer ${setting('NeMo Gym', /policy_api_key:/)}`;
  expect(setting('NeMo Gym', /policy_model_name:/)).toBe('my-model');
  await playNemoGym(setting('NeMo Gym', /policy_base_url:/), { authorization });
});

it('a client of ThunderAgent runs two turns of a program, and releases the program', async () => {
  await start('vllm');
  const [, name, value] = /config patch (\w+)=(\w+)$/m.exec(readmeLines('ThunderAgent').join('\n'))!;
  await bench.client.call(bench.pool, 'pool.configure', { [name!]: value });
  const client = new OpenAI({
    baseURL: setting('ThunderAgent', /export OPENAI_BASE_URL/),
    apiKey: setting('ThunderAgent', /export OPENAI_API_KEY/),
    maxRetries: 0,
  });
  const router = setting('ThunderAgent', /export ROUTER_URL/);
  const chat = { model: 'my-model', messages: [{ role: 'user' as const, content: 'Fix it.' }], max_tokens: TOKENS };
  // The package for Python sends `extra_body` so.
  const program = { program_id: 'hle:1:a', job_id: 'hle:1:a', is_last_step: false };
  for (let turn = 0; turn < 2; turn++) {
    const answer = await client.chat.completions.create({ ...chat, ...program });
    expect(answer.usage?.completion_tokens).toBe(TOKENS);
  }
  const programs = async () => (await (await fetch(`${router}/programs`)).json()) as Record<string, object>;
  await expect
    .poll(programs)
    .toMatchObject({ 'hle:1:a': { backend: bench.engine.url, status: 'acting', state: 'active' } });
  const released = await post(`${router}/programs/release`, { program_id: 'hle:1:a' });
  expect([released.status, released.body]).toEqual([200, { program_id: 'hle:1:a', released: true }]);
  expect(await programs()).toEqual({});
});
