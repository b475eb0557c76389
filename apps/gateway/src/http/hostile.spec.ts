import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { inject, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, type Reply } from '../../../../test/system/gateway';
import { ServiceBench } from '../../../../test/system/service-bench';
import { usedBytes } from '../../../../test/system/used-bytes';

let bench: ServiceBench;
let gateway: Gateway | undefined;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 60);
  // A wrong field may take the budget of a request away, which then runs until the engine ends the response.
  await bench.begin(() => 40, 1, 'sglang');
  await bench.register({ dialect: 'sglang' });
});
beforeEach(async () => {
  gateway ??= await Gateway.start(bench.prefix, bench.pool, { rejoinMs: 0 });
});
afterAll(async () => {
  await gateway?.close();
  await bench?.engine.close();
  await bench?.close();
});

it('does not join requests of two routes, though id and body are the same', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
  const both = {
    prompt: 'a',
    messages: [{ role: 'user', content: 'a' }],
    max_tokens: 20,
    stream: true,
    request_id: 'r1',
  };
  const first = gateway!.post('/v1/completions', both);
  await expect.poll(async () => (await fetchState(bench.engine.url)).requests.received).toBe(1);
  const second = await gateway!.post('/v1/chat/completions', both);
  await gateway!.post('/abort_request', { abort_all: true });
  expect([second.status, (await first).status]).toEqual([422, 200]);
});

it('does not keep aborts of ids that no request can have', async () => {
  const id = 'x'.repeat(2_000_000);
  expect((await gateway!.post('/abort_request', { rid: id })).status).toBe(200);
  expect((await gateway!.post('/abort_requests', { request_ids: [id] })).status).toBe(200);
});

/** Sends a line as it is, and returns the whole answer. */
function answerTo(line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(gateway!.url).port), '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.on('error', reject).on('close', () => resolve(text));
    socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  });
}

it.each([
  ['GET http://[/', 404],
  ['GET http://gateway/v1/models', 200],
  ['GET //v1/models', 404],
  ['POST /%2e%2e/workers', 404],
  ['GET /v1%2Fmodels', 404],
  ['GET /v1/models/', 404],
  ['GET /sessions/s/v1/models', 200],
  ['GET /livez%ff', 404],
  ['OPTIONS *', 404],
  ['TRACE /', 405],
  ['TRACE /nothing', 404],
])('answers %s with JSON', async (line, status) => {
  const answer = await answerTo(line);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*content-type: application/json`, 'i'));
});

/** JSON that `JSON.parse` reads and `JSON.stringify` cannot write again. */
const DEEP = `${'{"a":'.repeat(8_000)}1${'}'.repeat(8_000)}`;

it.each([
  ['/generate', `{"input_ids":[1],"sampling_params":{"max_new_tokens":1},"x":${DEEP}}`, 422, 'ENGINE_REJECTED'],
  ['/v1/completions', `{"prompt":"a","max_tokens":1,"x":${DEEP}}`, 422, 'ENGINE_REJECTED'],
  [
    '/v1/messages',
    `{"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","input":${DEEP}}]}]}`,
    400,
    'invalid_request_error',
  ],
  [
    '/v1/messages/count_tokens',
    `{"messages":[{"role":"user","content":"a"}],"x":${DEEP}}`,
    400,
    'invalid_request_error',
  ],
])('%s refuses values that are nested too deeply, and its engine has not failed', async (path, body, status, type) => {
  const refused = await gateway!.post(path, body);
  expect([refused.status, refused.body.error.type]).toEqual([status, type]);
  if (status === 422) expect(refused.headers['x-broomwagon-attempts']).toBe('1');
  const { servers } = await bench.client.call(bench.pool, 'server.list', {});
  expect(servers).toMatchObject([{ state: 'ready' }]);
});

it.each([
  ['/v1/chat/completions', '{"messages":[{"role":"user","content":"a"}],"max_tokens":1,"__proto__":{"tools":{"a":1}}}'],
  ['/v1/completions', '{"prompt":"a","max_tokens":1,"__proto__":{"include_stop_str_in_output":true,"guided_json":1}}'],
  ['/generate', '{"text":"a","sampling_params":{"max_new_tokens":1,"__proto__":{"regex":1}},"__proto__":{"rid":1}}'],
])('%s reads no field of an object that is named __proto__', async (path, body) => {
  expect((await gateway!.post(path, body)).status).toBe(200);
});

const WRONG = [null, true, -1, 1.5, '', '\ud800', [null], { a: [] }];
const CHAT = { messages: [{ role: 'user', content: 'a' }], max_tokens: 1, tools: [], tool_choice: 'auto', model: 'm' };
const BODIES: [string, Record<string, unknown>][] = [
  ['/generate', { input_ids: [1], rid: 'r', session_id: 's', sampling_params: { max_new_tokens: 1 }, image_data: 'a' }],
  ['/inference/v1/generate', { token_ids: [1], request_id: 'r', sampling_params: { max_tokens: 1 }, features: {} }],
  ['/v1/completions', { prompt: 'a', n: 1, max_tokens: 1, stop: ['a'], logprobs: 1, stream_options: {}, seed: 1 }],
  ['/v1/chat/completions', { ...CHAT, n: 1, stop: ['a'], top_logprobs: 1, stream_options: {}, response_format: {} }],
  ['/chat/completions', { ...CHAT, program_id: 'p', extra_body: { program_id: 'p' }, parent_session_id: 'q' }],
  ['/v1/messages', { ...CHAT, system: 'a', stop_sequences: ['a'], thinking: {}, metadata: {} }],
  ['/v1/messages/count_tokens', { ...CHAT, system: 'a' }],
  ['/v1/responses', { input: 'a', max_output_tokens: 1, instructions: 'a', text: {}, reasoning: {}, include: [] }],
  ['/tokenize', { prompt: 'a', model: 'm' }],
  ['/abort_request', { rid: 'r', abort_all: false, prefix: false }],
  ['/abort_requests', { request_ids: ['r'] }],
  ['/finish_session', { session_id: 's', program_id: 's' }],
  ['/programs/release', { program_id: 's', extra_body: { program_id: 's' }, session_params: { session_id: 's' } }],
  ['/sessions', { session_id: 's', job: 'j' }],
  ['/workers', { url: 'u', worker_type: 'regular' }],
  ['/update_weights_from_disk', { weight_version: '1' }],
  ['/init_weights_update_group', { rank_offset: 1, world_size: 2 }],
];

it.each(BODIES)('%s answers any wrong field without an internal error', async (path, right) => {
  // A null counts as absent, and without a budget a response has no end.
  const bodies = Object.keys(right)
    .flatMap((name) => WRONG.map((value) => ({ ...right, [name]: value })))
    .filter((body) => Object.entries(body).every(([name, value]) => value !== null || !name.startsWith('max_')));
  const replies = await Promise.all(bodies.map((body) => gateway!.post(path, body)));
  const defects = replies.filter(({ body }) => (body?.error?.type ?? body?.error?.code) === 'INTERNAL');
  expect(defects).toEqual([]);
});

/** Number of requests of each bad kind. The first ones fill caches and compile code. */
const [WARM_UP, COUNTED] = [40, 400];
const PADDING = 20_000;
/** A tenth of the bytes of the bodies of counted requests. */
const KEPT_BYTES = (8 * COUNTED * PADDING) / 10;

it('keeps nothing of thousands of bad requests', async () => {
  const text = (number: number) => `${number}`.padStart(PADDING, 'x');
  const right = { input_ids: [1], sampling_params: { max_new_tokens: 1 } };
  const kinds: ((number: number) => Promise<Reply>)[] = [
    (number) => gateway!.post('/generate', `{"text":"${text(number)}`),
    (number) => gateway!.post('/generate', { ...right, text: text(number) }),
    (number) => gateway!.post('/generate', { ...right, rid: text(number) }),
    (number) => gateway!.post('/v1/completions', { prompt: text(number), n: 10_000 }),
    (number) => gateway!.post('/v1/chat/completions', { messages: [{ role: text(number), content: 1 }] }),
    (number) => gateway!.post('/v1/messages', { messages: [{ role: text(number) }], max_tokens: 1 }),
    (number) => gateway!.post(`/sessions/${number}/generate`, { ...right, x: text(number), session_id: 'other' }),
    (number) => gateway!.post(`/${number}`, { x: text(number) }, { 'x-session-id': `${number}` }),
  ];
  const send = async (from: number, to: number): Promise<void> => {
    for (let number = from; number < to; number++) {
      const replies = await Promise.all(kinds.map((kind) => kind(number)));
      expect(replies.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400, 400, 404]);
    }
  };
  await send(0, WARM_UP);
  const before = await usedBytes();
  await send(WARM_UP, WARM_UP + COUNTED);
  expect((await usedBytes()) - before).toBeLessThan(KEPT_BYTES);
});
