import type { ServerResponse } from 'node:http';
import { workerCommandSubject } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { GatewayConfig } from '../../gateway.config';
import { parseEvents, Gateway, open } from '../../../../../test/system/gateway';
import { ServiceBench } from '../../../../../test/system/service-bench';
import { send, StubEngine } from '../../../../../test/system/stub-engine';

const TOKENS = '/inference/v1/generate';
const CHAT = '/v1/chat/completions';
const JSON_HEAD = { 'content-type': 'application/json' };
const messages = [{ role: 'user', content: 'a' }];
/** Request that is passed on because of `n`. */
const TWO = { token_ids: [1, 2, 3], sampling_params: { n: 2, max_tokens: 1 } };

let bench: ServiceBench;
let gateway: Gateway;
let engines: StubEngine[] = [];

beforeAll(async () => {
  bench = await ServiceBench.open({}, 25);
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
  for (let index = 0; index < count; index += 1) await addEngine(dialect);
  gateway = await Gateway.start(bench.prefix, bench.pool, settings);
  return engines[0]!;
}
async function addEngine(dialect: 'vllm' | 'sglang', serverId = `stub-${engines.length}`, model = 'm'): Promise<void> {
  const engine = await StubEngine.start(dialect, model);
  engines.push(engine);
  await bench.register({ serverId, instanceId: serverId, endpoint: engine.url, dialect, model, maxInflight: 1 });
}
const calls = () => engines.flatMap((engine) => engine.calls);
/** Calls that each engine has received. */
const countCalls = () => engines.map(({ calls: { length } }) => length);
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
  for (const model of ['a', 'b']) await addEngine('vllm', model, model);
  for (const model of ['a', 'b', 'b', 'b', 'a', 'a']) {
    const reply = await gateway.post(TOKENS, { ...TWO, model });
    expect([reply.status, reply.headers['x-broomwagon-server']]).toEqual([200, model]);
  }
});

/** The engine that is called first answers by `first`; all later calls are answered with one token. */
function failFirst(first: StubEngine['answer']): void {
  let isFirst = true;
  for (const engine of engines) {
    const { answer } = engine;
    engine.answer = (...call) => {
      const take = isFirst ? first : answer;
      isFirst = false;
      return take(...call);
    };
  }
}

it.each<[string, StubEngine['answer']]>([
  ['answers 500', (_, response) => send(response, 500, {})],
  ['answers 429 with Retry-After', (_, response) => void response.writeHead(429, { 'retry-after': '250' }).end('full')],
  [
    'closes its connection in the middle of the answer',
    (_, response) => {
      response.writeHead(200, JSON_HEAD).write('{"choices": [', () => response.destroy());
    },
  ],
])('a passed request begins again on another engine if its engine %s', async (_, first) => {
  await begin('vllm', 2);
  failFirst(first);
  const { status, headers, body } = await gateway.post(TOKENS, TWO);
  expect([status, headers['x-broomwagon-attempts'], body.choices[0].token_ids]).toEqual([200, '2', [5]]);
  expect(countCalls()).toEqual([1, 1]);
});

it('a passed request waits while its only engine is busy, and then gets the Retry-After of the engine', async () => {
  const engine = await begin('vllm', 1, { noServerDeadlineMs: 300 });
  engine.answer = (_, response) => void response.writeHead(429, { 'retry-after': '7' }).end('full');
  const { status, headers, body } = await gateway.post(TOKENS, TWO);
  expect([status, body.error.type, headers['retry-after'], calls().length]).toEqual([503, 'ENGINE_BUSY', '7', 1]);
});

it('a passed request begins again on another engine if its server is removed or drained, and its call is aborted', async () => {
  await begin('vllm');
  await addEngine('vllm');
  for (const engine of engines) engine.answer = (_, response) => void response.writeHead(200, JSON_HEAD).write('{');
  const end = (operation: 'server.remove' | 'server.drain', serverId: string) =>
    bench.client.call(bench.pool, operation, operation === 'server.drain' ? { serverId, deadlineMs: 0 } : { serverId });
  const replies = [0, 1].map(() => gateway.post(TOKENS, TWO));
  await expect.poll(countCalls).toEqual([1, 1]);
  await addEngine('vllm');
  await Promise.all([end('server.remove', 'stub-0'), end('server.drain', 'stub-1')]);
  for (const { status, headers } of await Promise.all(replies)) {
    const { 'x-broomwagon-attempts': attempts, 'x-broomwagon-server': server } = headers;
    expect([status, attempts, server]).toEqual([200, '2', 'stub-2']);
  }
  for (const {
    aborted,
    calls: [call],
  } of engines.slice(0, 2)) {
    await expect.poll(() => JSON.stringify(aborted)).toContain(String(call!.body.request_id));
  }
});

it('a change of weights lets a passed request run to its end', async () => {
  const engine = await begin('vllm');
  let finish!: () => void;
  const { answer } = engine;
  engine.answer = (...call) => void (finish = () => void answer(...call));
  const reply = gateway.post(TOKENS, TWO);
  await expect.poll(() => calls().length).toBe(1);
  const [lease] = (await bench.client.call(bench.pool, 'lb.leases', {})).leases;
  const { leaseId, requestId, workerId, workerEpoch } = lease!;
  await bench.client.call(bench.pool, 'weights.begin', { syncId: 'w', version: 1, mode: 'abort', waitMs: 0 });
  // The load-balancer sends this command, too; the reply shows that the gateway has received one.
  const cut = { workerEpoch, cause: 'cut', attempts: [], leases: [{ leaseId, requestId }] };
  const command = workerCommandSubject(bench.pool, workerId, 'abort');
  expect(await bench.client.messaging.request(command, cut)).toEqual({ stopped: 0 });
  finish();
  const { status, headers } = await reply;
  expect([status, headers['x-broomwagon-attempts'], calls().length, engine.aborted]).toEqual([200, '1', 1, []]);
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
  engine.answer = (_, response) => void response.writeHead(200, { ...JSON_HEAD, 'content-encoding': 'gzip' }).end('{}');
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
