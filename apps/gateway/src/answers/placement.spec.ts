import { beforeEach, expect, it } from 'vitest';
import { inject } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, post } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const LONG = 150;
const generate = (maxNewTokens: number) => ({
  input_ids: [11, 12, 13],
  sampling_params: { max_new_tokens: maxNewTokens, sampling_seed: 7 },
});

const system = useGateway(10, {
  speed: 2,
  registered: 'none',
  gateway: { noServerDeadlineMs: 200 },
  balancer: { maxWaiters: 2 },
});
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const status = () => bench.client.call(bench.pool, 'lb.status', {});
const leases = async () => (await bench.client.call(bench.pool, 'lb.leases', {})).leases;

it('X-Broomwagon-Priority: the higher of two waiting requests is served first', async () => {
  const patient = await Gateway.start(bench.prefix, bench.pool);
  await bench.register({ dialect: 'sglang', maxInflight: 1 });
  const first = patient.post('/generate', { ...generate(8_000), rid: 'first' });
  await expect.poll(async () => (await leases()).length).toBe(1);
  const low = patient.post('/generate', { ...generate(8_000), rid: 'low' }, { 'x-broomwagon-priority': '1' });
  await expect.poll(async () => (await status()).waiters).toBe(1);
  const high = patient.post('/generate', generate(3), { 'x-broomwagon-priority': '9' });
  await expect.poll(async () => (await status()).waiters).toBe(2);
  await patient.post('/abort_request', { rid: 'first' });
  expect((await high).body.output_ids).toHaveLength(3);
  await patient.post('/abort_request', { rid: 'low' });
  await Promise.all([first, low]);
  await patient.close();
});

it('a full pool is answered 429: when the wait has ended, and at once where a queue is full', async () => {
  await bench.register({ dialect: 'sglang', maxInflight: 1 });
  const [patient, narrow] = await Promise.all([
    Gateway.start(bench.prefix, bench.pool),
    Gateway.start(bench.prefix, bench.pool, { maxGenerations: 1 }),
  ]);
  const running = [patient.post('/generate', generate(8_000))];
  await expect.poll(async () => (await leases()).length).toBe(1);
  const fetchRefusal = async (replica: Gateway) => {
    const { status, body, headers } = await replica.post('/generate', generate(3));
    return [status, body.error.type, body.error.retryable, headers['retry-after']];
  };
  expect(await fetchRefusal(gateway)).toEqual([429, 'SERVERS_FULL', true, '1']);
  running.push(patient.post('/generate', generate(8_000)), narrow.post('/generate', generate(8_000)));
  await expect.poll(async () => (await status()).waiters).toBe(2);
  for (const replica of [patient, narrow]) expect(await fetchRefusal(replica)).toEqual([429, 'QUEUE_FULL', true, '1']);
  await patient.post('/abort_request', { abort_all: true });
  await Promise.all(running);
  for (const replica of [patient, narrow]) await replica.close();
});

it('X-Broomwagon-Job and -Group: the group of a lease, which two jobs do not share', async () => {
  await bench.register({ dialect: 'sglang' });
  const group = { 'x-broomwagon-group': 'g' };
  const replies = [
    gateway.post('/generate', generate(8_000), { ...group, 'x-broomwagon-job': 'a' }),
    gateway.post('/generate', generate(8_000), { ...group, 'x-broomwagon-job': 'b' }),
  ];
  await expect.poll(async () => (await leases()).map(({ groupId }) => groupId).sort()).toEqual(['a/g', 'b/g']);
  await gateway.post('/abort_request', { abort_all: true });
  await Promise.all(replies);
});

it('X-Broomwagon-Parent-Session: the parent of a session, which stays', async () => {
  await bench.client.call(bench.pool, 'pool.configure', { sessionAdmission: 'kv' });
  await bench.register({ dialect: 'sglang' });
  const turn = (parent: string) =>
    gateway.post('/generate', generate(3), { 'x-session-id': 'child', 'x-broomwagon-parent-session': parent });
  expect((await turn('parent')).body.output_ids).toHaveLength(3);
  const sessions = async () => (await bench.client.call(bench.pool, 'lb.sessions', {})).sessions;
  await expect
    .poll(sessions)
    .toMatchObject([{ sessionId: 'child', parentSessionId: 'parent', leases: 0, contextTokens: 6 }]);
  const refused = await turn('other');
  expect([refused.status, refused.body.error.type]).toEqual([409, 'SESSION_CONFLICT']);
  expect((await turn('x'.repeat(600))).status).toBe(400);
});

it('the gates of weights: exact, at least, at most so many behind', async () => {
  await bench.register({ dialect: 'sglang', weightVersion: 2 });
  await system.registerSecond({ weightVersion: 3 });
  const fetchServer = async (name: string, value: string) =>
    (await gateway.post('/generate', generate(2), { [name]: value })).headers['x-broomwagon-server'];
  expect(await fetchServer('x-broomwagon-weight-version', '2')).toBe('s1');
  expect(await fetchServer('x-broomwagon-weight-version', '3')).toBe('s2');
  expect(await fetchServer('x-broomwagon-min-weight-version', '3')).toBe('s2');
  expect(await fetchServer('x-broomwagon-max-weight-lag', '0')).toBe('s2');
  const none = await gateway.post('/generate', generate(2), { 'x-broomwagon-weight-version': '9' });
  expect([none.status, none.body.error.type, none.body.error.retryable]).toEqual([503, 'NO_SERVER_AVAILABLE', true]);
  const wrong = await gateway.post('/generate', generate(2), { 'x-broomwagon-min-weight-version': 'x' });
  expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-broomwagon-min-weight-version']);
});

it('a drain of the server: a running response is continued on another, with the tokens of an uncut one', async () => {
  await bench.register({ dialect: 'sglang' });
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const reply = gateway.post('/generate', generate(LONG));
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(6);
  await system.registerSecond();
  await bench.client.call(bench.pool, 'server.drain', { serverId: 's1', deadlineMs: 0 });
  const { body, headers } = await reply;
  expect(headers['x-broomwagon-server']).toBe('s2');
  expect(body.output_ids).toEqual((await post(`${system.second.url}/generate`, generate(LONG))).body.output_ids);
});

it('a drain of the server: structured output runs on before its deadline', async () => {
  await bench.register({ dialect: 'sglang' });
  const { sampling_params, ...others } = generate(LONG);
  const reply = gateway.post('/generate', { ...others, sampling_params: { ...sampling_params, regex: 'a*' } });
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBeGreaterThan(5);
  await system.registerSecond();
  await bench.client.call(bench.pool, 'server.drain', { serverId: 's1', deadlineMs: 60_000 });
  const { body, headers } = await reply;
  expect([headers['x-broomwagon-server'], headers['x-broomwagon-attempts']]).toEqual(['s1', '1']);
  expect(body.output_ids).toHaveLength(LONG);
});
