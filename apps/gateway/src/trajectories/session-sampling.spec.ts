import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Gateway } from '../../../../test/system/gateway';
import { ServiceBench } from '../../../../test/system/service-bench';
import { StubEngine } from '../../../../test/system/stub-engine';

const SAMPLING = { temperature: 0.125, max_tokens: 7, seed: 3, presence_penalty: 0.5, logprobs: 1 };
const messages = [{ role: 'user', content: 'a' }];
const TOKENS = { token_ids: [1, 2, 3] };

let bench: ServiceBench;
let engine: StubEngine;
let gateway: Gateway;
/** Session of the test. */
let session: string;
let sessions = 0;
beforeAll(async () => {
  bench = await ServiceBench.open({}, 2);
  await startPool();
});
afterAll(async () => {
  await stopPool();
  await bench.close();
});
beforeEach(() => {
  session = `s${(sessions += 1)}`;
});

/** The tests share one pool: the first session of a pool with parameters waits until each replica asks for them. */
async function startPool() {
  await bench.begin(() => 1);
  engine = await StubEngine.start('vllm');
  await bench.register({ serverId: 's', instanceId: 'i', endpoint: engine.url, dialect: 'vllm', model: 'm' });
  gateway = await Gateway.start(bench.prefix, bench.pool);
}

async function stopPool() {
  await gateway.close();
  engine.close();
  await bench.end();
}

const open = (body: object) => gateway.post('/sessions', { session_id: session, ...body });
/** Parameters that the engine has received last, of the body itself or of its `sampling_params`. */
function lastSampling(): Record<string, unknown> {
  const { body } = engine.calls.at(-1)!;
  return { ...body, ...(body.sampling_params as object | undefined) };
}

// Each request has two parameters of its own; the session replaces one.
const own = { temperature: 0.9, top_p: 0.5 };
describe.each<[string, string, object]>([
  ['/generate', '/generate', { input_ids: [1, 2], sampling_params: { ...own, max_new_tokens: 2 } }],
  ['/generate without parameters', '/generate', { text: 'a' }],
  ['/generate of a batch', '/generate', { text: ['a'], sampling_params: [{ ...own, n: 1 }] }],
  ['/inference/v1/generate', '/inference/v1/generate', { ...TOKENS, sampling_params: { ...own, max_tokens: 2 } }],
  ['/skyrl/v1/generate', '/skyrl/v1/generate', { ...TOKENS, sampling_params: own }],
  ['/v1/completions', '/v1/completions', { prompt: 'a', max_tokens: 2, ...own }],
  ['/v1/chat/completions', '/v1/chat/completions', { messages, max_completion_tokens: 2, ...own }],
  ['/chat/completions', '/chat/completions', { messages, ...own }],
  ['/v1/messages', '/v1/messages', { messages, max_tokens: 2, ...own }],
  ['/v1/responses', '/v1/responses', { input: 'a', max_output_tokens: 2, ...own }],
  ['/responses', '/responses', { input: 'a', ...own }],
  ['a request that is passed on', '/v1/completions', { prompt: 'a', max_tokens: 2, a_new_field: 1, ...own }],
])('the sampling parameters of a session replace those of its requests: %s', (_, path, body) => {
  it('by path, key, header and field of the session, and of no other session', async () => {
    await open({ sampling_params: SAMPLING });
    const ofSession: [string, object, Record<string, string>][] = [
      [`/sessions/${session}${path}`, body, {}],
      [path, body, { authorization: `Bearer key.${session}` }],
      [path, body, { 'x-session-id': session }],
      [path, { session_id: session, ...body }, {}],
    ];
    const hasOwn = JSON.stringify(body).includes('top_p');
    for (const sent of ofSession) {
      const { status, body: answer } = await gateway.post(...sent);
      expect(status, JSON.stringify(answer)).toBe(200);
      const { logprobs: _recorded, ...set } = SAMPLING;
      expect(lastSampling()).toMatchObject({ ...set, ...(hasOwn && { top_p: 0.5 }) });
      expect(lastSampling()).not.toHaveProperty('max_completion_tokens');
    }
    await gateway.post(`/sessions/other${path}`, body);
    expect(lastSampling().temperature).toBe(hasOwn ? 0.9 : undefined);
    await gateway.post(path, body);
    expect(lastSampling().temperature).toBe(hasOwn ? 0.9 : undefined);
  });
});

const complete = (from = gateway) =>
  from.post(`/sessions/${session}/v1/completions`, { prompt: 'a', temperature: 0.9 });

it('every replica sets the parameters as soon as the session is opened, the first of its pool too', async () => {
  // A pool in which no session has parameters yet.
  await stopPool();
  await startPool();
  const other = await Gateway.start(bench.prefix, bench.pool);
  // The other replica learns that no session of the pool has parameters.
  await complete(other);
  expect(lastSampling().temperature).toBe(0.9);
  await open({ sampling_params: { temperature: 0.125 } });
  await complete(other);
  expect(lastSampling().temperature).toBe(0.125);
  await other.close();
});

it('later parameters replace those of a session, an opening without any keeps them, and its end ends them', async () => {
  await open({ sampling_params: { temperature: 0.125, top_k: 5 } });
  expect((await gateway.get(`/sessions/${session}`)).body.sampling_params).toEqual({ temperature: 0.125, top_k: 5 });
  await open({ sampling_params: { top_k: -1 } });
  for (const nothing of [{}, { sampling_params: {} }, { sampling_params: null }]) await open(nothing);
  const listed: { session_id: string; sampling_params: object }[] = (await gateway.get('/sessions')).body;
  expect(listed.find(({ session_id: id }) => id === session)!.sampling_params).toEqual({ top_k: -1 });
  await complete();
  expect(lastSampling()).toMatchObject({ temperature: 0.9, top_k: -1 });
  await gateway.post('/sessions/batch_delete', { session_ids: [session] });
  await complete();
  expect(lastSampling()).not.toHaveProperty('top_k');
});

it.each<[string, unknown]>([
  ['sampling_params', 7],
  ['sampling_params', { stop: ['x'.repeat(5_000)] }],
  ['sampling_params', { logit_bias: { 1: 'x'.repeat(5_000) } }],
  ['sampling_params.temperature', { temperature: 'hot' }],
  ['sampling_params.top_k', { top_k: 1.5 }],
  ['sampling_params.max_tokens', { max_tokens: 0 }],
  ['sampling_params.max_tokens', { max_completion_tokens: 'x' }],
  ['sampling_params.n', { n: 2 }],
  ['sampling_params.messages', { messages: [] }],
  ['sampling_params.model', { temperature: 1, model: 'm' }],
  ['sampling_params.temprature', { temprature: 1 }],
  ['sampling_params.__proto__', JSON.parse('{"__proto__": 1}')],
])('refuses a session with wrong sampling parameters, and names the field %s', async (field, sampling) => {
  const { status, body } = await open({ sampling_params: sampling });
  expect([status, body.error.type, body.error.param]).toEqual([400, 'VALIDATION_FAILED', field]);
  expect((await gateway.get(`/sessions/${session}`)).status).toBe(404);
});
