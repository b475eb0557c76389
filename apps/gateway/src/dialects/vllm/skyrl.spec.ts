import { beforeEach, expect, it } from 'vitest';
import { inEngine } from '../../../../../lab/engine-simulator/src/test-engine';
import { post } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

const tokens = (maxTokens: number, more: object = {}) => ({
  token_ids: [11, 12, 13],
  model: 'simulated',
  sampling_params: { max_tokens: maxTokens, seed: 7, logprobs: 0 },
  ...more,
});

const system = useGateway(16, { dialect: 'vllm', speed: 2, secondSpeed: 2, registered: 'both' });
let { bench, gateway, second } = system;
beforeEach(() => {
  ({ bench, gateway, second } = system);
});

const sessions = async () => (await bench.client.call(bench.pool, 'lb.status', {})).sessions;

it('/skyrl/v1/generate answers as /inference/v1/generate, with experts or null', async () => {
  const { status, body } = await gateway.post('/skyrl/v1/generate', tokens(20));
  const plain = await gateway.post('/inference/v1/generate', tokens(20));
  expect([status, body.choices[0].routed_experts]).toEqual([200, null]);
  expect(body.choices[0]).toMatchObject(plain.body.choices[0]);
  const wrong = await gateway.post('/skyrl/v1/generate', { token_ids: 'a' });
  expect([wrong.status, wrong.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
});

it.each([
  ['/finish_session?session_id=a', ''],
  ['/finish_session', { session_id: 'a' }],
  ['/sessions/a/finish_session', ''],
])('%s forgets a session that body, header or program has named', async (path, body) => {
  const first = await gateway.post('/inference/v1/generate', tokens(2, { program_id: 'a' }));
  const again = await gateway.post('/inference/v1/generate', tokens(2), { 'x-session-id': 'a' });
  expect(again.headers['x-broomwagon-server']).toBe(first.headers['x-broomwagon-server']);
  expect(await sessions()).toBe(1);
  const reply = await gateway.post(path, body);
  expect([reply.status, reply.body, await sessions()]).toEqual([200, { status: 'ok', finished: true }, 0]);
  expect((await gateway.post(path, body)).body.finished).toBe(false);
});

it('refuses to finish a session without a name, and requests of two sessions', async () => {
  for (const body of [{}, { session_id: 3 }, { session_id: ['a'] }]) {
    const { status, body: reply } = await gateway.post('/finish_session', body);
    expect([status, reply.error.type, reply.error.param]).toEqual([400, 'VALIDATION_FAILED', 'session_id']);
  }
  const two = await gateway.post('/v1/completions', { prompt: 'a', program_id: 'a' }, { 'x-session-id': 'b' });
  expect([two.status, two.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
});

it('lists the servers of the pool', async () => {
  const { body } = await gateway.get('/servers');
  expect([...body.servers].sort()).toEqual([bench.engine.url, second.url].sort());
});

it.each([
  ['an id', () => ['q'], 'abort'],
  ['an id as vLLM names it', () => ['cmpl-q-0'], 'abort'],
  ['an empty list: all', () => [], 'abort'],
  ['no list, as vime sends: all', () => undefined, 'abort'],
])('/abort_requests ends what %s means, on the engine too', async (_, ids, reason) => {
  const reply = gateway.post('/inference/v1/generate', tokens(8_000, { request_id: 'q' }));
  const running = async () => (await inEngine(bench.engine.url)) + (await inEngine(second.url));
  await expect.poll(running).toBe(1);
  expect(await post(`${gateway.url}/abort_requests`, { request_ids: ids() })).toMatchObject({ status: 200, body: {} });
  expect((await reply).body.choices[0].finish_reason).toBe(reason);
  await expect.poll(running).toBe(0);
});

it('/abort_requests refuses ids that are no list of texts', async () => {
  for (const ids of ['q', [1], Array.from({ length: 5_000 }, () => 'a')]) {
    const { status, body } = await gateway.post('/abort_requests', { request_ids: ids });
    expect([status, body.error.param]).toEqual([400, 'request_ids']);
  }
});
