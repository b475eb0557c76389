import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { GatewayConfig } from '../apps/gateway/src/gateway.config';
import { parseEvents, Gateway, open } from './system/gateway';
import { ServiceBench } from './system/service-bench';
import { send, StubEngine } from './system/stub-engine';

const TOKENS = '/inference/v1/generate';
const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'a' }];
/** Request that is passed on because of `n`. */
const TWO = { token_ids: [1, 2, 3], sampling_params: { n: 2, max_tokens: 1 } };

let bench: ServiceBench;
let gateway: Gateway;
let engines: StubEngine[] = [];

beforeAll(async () => {
  bench = await ServiceBench.open({}, 21);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  for (const engine of engines.splice(0)) engine.close();
  await expect.poll(async () => (await bench.client.call(bench.pool, 'lb.status', {})).leases).toBe(0);
  await bench.end();
});

async function begin(
  dialect: 'vllm' | 'sglang',
  count = 1,
  settings: Partial<GatewayConfig> = {},
): Promise<StubEngine> {
  await bench.begin(() => 1, 1, dialect);
  for (let index = 0; index < count; index += 1) {
    const engine = await StubEngine.start(dialect);
    engines.push(engine);
    const server = { serverId: `stub-${index}`, instanceId: `i${index}`, endpoint: engine.url };
    await bench.register({ ...server, dialect, model: 'm' });
  }
  gateway = await Gateway.start(bench.prefix, bench.pool, settings);
  return engines[0]!;
}
const calls = () => engines.flatMap((engine) => engine.calls);
const choice = (id: number) => ({ index: 0, token_ids: [id], finish_reason: 'stop' });

it('a passed request keeps body and answer as they are, with the id of the call and the cache salt, and the gateway takes its counts', async () => {
  const engine = await begin('vllm');
  const answer = {
    choices: [choice(5), choice(6)],
    usage: { completion_tokens: 2 },
    prompt_logprobs: [null, { 2: {} }],
  };
  engine.answer = (_, response) => send(response, 200, answer);
  const features = { mm_hashes: { image: ['h'] }, mm_placeholders: { image: [{ offset: 0, length: 1 }] } };
  const body = { ...TWO, features, request_id: 'mine', model: 'm' };
  const reply = await gateway.post(TOKENS, body, { 'x-smg-routing-key': 'key' });
  expect([reply.status, reply.body]).toEqual([200, answer]);
  expect(calls()[0]!.headers['x-smg-routing-key']).toBe('key');
  const { request_id: id, cache_salt: salt, ...sent } = calls()[0]!.body;
  expect(sent).toEqual({ ...TWO, features, model: 'm' });
  expect(salt).toMatch(/^\d{13}$/);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect([reply.headers['x-broomwagon-attempts'], reply.headers['x-broomwagon-server']]).toEqual(['1', 'stub-0']);
  expect(await gateway.metric('tokens_generated_total')).toBe(2);
});

it('a passed request gets the status and the message of an engine that refuses it', async () => {
  const engine = await begin('vllm');
  const refusal = { object: 'error', message: 'n must be 1 when temperature is 0', code: 400 };
  engine.answer = (_, response) => send(response, 400, refusal);
  const { status, body } = await gateway.post(TOKENS, TWO);
  expect([status, body, calls().length]).toEqual([400, refusal, 1]);
  const { servers } = await bench.client.call(bench.pool, 'server.list', {});
  expect(servers.map(({ state }) => state)).toContain('ready');
});

it.each<['vllm' | 'sglang', string, object]>([
  ['vllm', TOKENS, { token_ids: [1], sampling_params: { max_tokens: 1, logprobs: 5 } }],
  ['vllm', TOKENS, { token_ids: [1], features: { image: 1 } }],
  ['vllm', TOKENS, { token_ids: [1], sampling_params: { max_tokens: 1, output_kind: 0 } }],
  ['sglang', '/generate', { input_ids: [1], sampling_params: { max_new_tokens: 0 } }],
  ['sglang', '/generate', { input_ids: [[1], [2]], sampling_params: [{}, { max_new_tokens: 0 }] }],
])('a passed request on %s gets any answer of the engine: %s %j', async (dialect, path, body) => {
  const engine = await begin(dialect);
  const refusal = { error: { message: 'prompt too short' } };
  for (const [status, answer] of [
    [200, { meta_info: {} }],
    [400, refusal],
    [422, refusal],
  ] as const) {
    engine.answer = (_, response) => send(response, status, answer);
    const reply = await gateway.post(path, body);
    expect([reply.status, reply.body]).toEqual([status, answer]);
    // Broomwagon names the request, and the weights for the prefix cache.
    const { rid: _rid, request_id: _id, cache_salt: _salt, extra_key: _key, ...sent } = calls().at(-1)!.body;
    expect(sent).toEqual(body);
  }
});

it('a passed request goes to an engine that has the model it names', async () => {
  await begin('vllm', 0);
  for (const [index, model] of ['a', 'b'].entries()) {
    const engine = await StubEngine.start('vllm', model);
    engines.push(engine);
    await bench.register({ serverId: model, instanceId: `i${index}`, endpoint: engine.url, dialect: 'vllm', model });
  }
  for (const model of ['a', 'b', 'b', 'b', 'a', 'a']) {
    const reply = await gateway.post(TOKENS, { ...TWO, model });
    expect([reply.status, reply.headers['x-broomwagon-server']]).toEqual([200, model]);
  }
});

it('a passed request begins again on another engine if its engine fails', async () => {
  await begin('vllm', 2);
  engines[0]!.answer = (_, response) => send(response, 500, {});
  for (let round = 0; round < 4; round += 1) {
    const { status, body } = await gateway.post(TOKENS, TWO);
    expect([status, body.choices[0].token_ids]).toEqual([200, [5]]);
  }
  expect(engines[0]!.calls.length).toBeGreaterThan(0);
});

it.each([
  ['by its id', (id: string) => gateway.post('/abort_request', { rid: id })],
  ['by its client, which disconnects', undefined],
])('a passed request that is aborted %s is aborted on the engine', async (_, abort) => {
  const engine = await begin('vllm', 1, { rejoinMs: 0 });
  engine.answer = () => undefined;
  const body = { ...TWO, request_id: 'mine' };
  const request = abort ? gateway.post(TOKENS, body) : open(`${gateway.url}${TOKENS}`, body);
  await expect.poll(() => calls().length).toBe(1);
  if ('destroy' in request) request.destroy();
  else {
    await abort!('mine');
    expect((await request).body.error.type).toBe('ABORTED');
  }
  await expect.poll(() => JSON.stringify(engine.aborted)).toContain(String(calls()[0]!.body.request_id));
  await expect.poll(() => gateway.metric('gateway_generations_running')).toBe(0);
});

it('all requests are passed to engines without streams, if the gateway is set so', async () => {
  await begin('vllm', 1, { passRequests: 'all' });
  const completion = await gateway.post('/v1/completions', { prompt: 'a', max_tokens: 1 });
  const chat = await gateway.post(CHAT, { messages, max_tokens: 1 });
  expect([completion.body.choices[0].text, chat.body.choices[0].message.content]).toEqual(['x', 'x']);
  expect(calls().map(({ body }) => body.stream)).toEqual([undefined, undefined]);
});

it('a compressed request is not passed on', async () => {
  const engine = await begin('vllm', 1, { maxEngineFailures: 1 });
  engine.answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('{}');
  };
  expect((await gateway.post(TOKENS, TWO)).body.error.type).toBe('ENGINE_PROTOCOL');
});

it('a passed request is given up when its engine has answered nothing for the time of a first token', async () => {
  const engine = await begin('vllm', 1, { engineFirstTokenTimeoutMs: 200, maxEngineFailures: 1 });
  engine.answer = () => undefined;
  const { body } = await gateway.post(TOKENS, TWO);
  expect([body.error.type, engine.aborted.length]).toEqual(['ENGINE_STALLED', 1]);
});

it('chats of SGLang have return_meta_info and input_ids of the session server of miles', async () => {
  const engine = await begin('sglang');
  const meta = {
    output_token_logprobs: [[-0.5, 5, null]],
    completion_tokens: 1,
    prompt_tokens: 2,
    weight_version: 'w',
  };
  const answer = { choices: [{ message: { content: 'x' }, finish_reason: 'stop', meta_info: meta }] };
  engine.answer = (_, response) => send(response, 200, answer);
  const body = { messages, input_ids: [7, 8], return_meta_info: true, logprobs: true, rid: 'r' };
  const reply = await gateway.post(CHAT, body, { 'x-session-id': 's', 'x-broomwagon-trajectory': 'record' });
  expect([reply.status, reply.body]).toEqual([200, answer]);
  const { path, body: sent } = calls()[0]!;
  expect([path, sent.input_ids, sent.return_meta_info, sent.stream]).toEqual([CHAT, [7, 8], true, undefined]);
  expect(reply.headers['x-broomwagon-weight-versions']).toBe('w:0-1');
  expect(reply.headers['x-broomwagon-trajectory']).toBe('missing:1:NO_PROMPT_IDS');
});

it('input_ids of a chat are refused by engines that would ignore them', async () => {
  await begin('vllm');
  const { status, body } = await gateway.post(CHAT, { messages, input_ids: [7, 8] });
  expect([status, body.error.param, calls()]).toEqual([422, 'input_ids', []]);
});

it('a passed request records its turn if the answer has one choice with ids', async () => {
  const engine = await begin('vllm');
  const logprobs = { content: [{ logprob: -0.25 }] };
  engine.answer = (_, response) =>
    send(response, 200, { choices: [{ ...choice(5), logprobs }], prompt_logprobs: [null] });
  const body = { token_ids: [1, 2, 3], sampling_params: { prompt_logprobs: 1, max_tokens: 1 } };
  const headers = { 'x-session-id': 's', 'x-broomwagon-trajectory': 'record' };
  expect((await gateway.post(TOKENS, body, headers)).headers['x-broomwagon-trajectory']).toBe('recorded:1');
  const { branches } = (await gateway.get('/sessions/s/trajectory')).body;
  expect(branches[0]).toMatchObject({ token_ids: [1, 2, 3, 5] });
});

it('a passed stream arrives piece by piece, and ends with an error if it breaks', async () => {
  const engine = await begin('vllm', 1, { maxEngineFailures: 1 });
  let streaming: ServerResponse | undefined;
  engine.answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"a":1}\n\n');
    streaming = response;
  };
  const body = { prompt: 'a', echo: true, stream: true, max_tokens: 4 };
  const pieces: string[] = [];
  const ended = new Promise<void>((resolve) => {
    open(`${gateway.url}/v1/completions`, body, {}, (response) => {
      response.setEncoding('utf8').on('data', (piece: string) => pieces.push(piece));
      response.on('end', resolve);
    });
  });
  await expect.poll(() => pieces).toEqual(['data: {"a":1}\n\n']);
  streaming!.write('data: {"b":2}\n\n');
  await expect.poll(() => pieces.length).toBe(2);
  streaming!.destroy();
  await ended;
  const events = parseEvents(pieces.join(''));
  expect(events).toMatchObject([{ a: 1 }, { b: 2 }, { error: { type: 'ENGINE_ERROR' } }, null]);
  expect(calls()).toHaveLength(1);
});

it('a request without max_tokens may fill the context of the model', async () => {
  await begin('vllm');
  const { status, body } = await gateway.post(TOKENS, { token_ids: [1, 2, 3], sampling_params: {} });
  expect([status, body.choices[0].token_ids]).toEqual([200, [5]]);
  expect(calls()[0]!.body.max_tokens).toBe(997);
});
