import { ENGINE_PRESETS } from '@broomwagon/models';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { beforeEach, expect, it } from 'vitest';
import { fetchState, inject } from '../../../../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../../../../../test/system/gateway';
import { useGateway } from '../../../../../test/system/gateway-bench';

const KV_TOKENS = 10_000;
const messages = [{ role: 'user', content: 'Fix the bug.' }];
const parameters = { ...ENGINE_PRESETS['7b-8k'], kvCapacityTokens: KV_TOKENS };
const system = useGateway(13, { dialect: 'vllm', speed: 20, engine: { parameters } });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const chat = (more: object, on = gateway, headers = {}) =>
  on.post('/v1/chat/completions', { model: 'simulated', messages, max_tokens: 3, ...more }, headers);
const sessions = async () => (await bench.client.call(bench.pool, 'lb.sessions', {})).sessions;

it.each([
  ['program_id with fields of its scheduler', { program_id: 'p', docker_ids: ['d'], job_id: 'p', is_last_step: false }],
  ['program_id in extra_body', { extra_body: { program_id: 'p' } }],
])('reads a chat with %s itself, as a turn of a session', async (_, fields) => {
  const { status, body } = await chat(fields, gateway, { 'x-broomwagon-details': 'body' });
  // An answer that is passed on has no details.
  expect([status, body.usage.completion_tokens, body.broomwagon.attempts]).toEqual([200, 3, 1]);
  await expect.poll(sessions).toMatchObject([{ sessionId: 'p', leases: 0 }]);
});

it('/programs lists sessions that run a call, and sessions between two calls', async () => {
  await chat({ program_id: 'away' });
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
  const running = chat({ program_id: 7, max_tokens: 100 });
  await expect
    .poll(async () => (await gateway.get('/programs')).body)
    .toEqual({
      away: {
        backend: bench.engine.url,
        context_len: null,
        total_tokens: null,
        step_count: null,
        status: 'acting',
        state: 'active',
      },
      7: expect.objectContaining({ status: 'reasoning', state: 'active' }),
    });
  await gateway.post('/abort_requests', {});
  await running;
});

/** A turn with so many tokens of context. */
const turn = (program: string, contextTokens: number, maxTokens = 3) =>
  gateway.post('/inference/v1/generate', {
    token_ids: Array.from({ length: contextTokens }, () => 11),
    sampling_params: { max_tokens: maxTokens, logprobs: 0 },
    program_id: program,
    request_id: `${program}-${contextTokens}`,
  });

it('/programs shows who is paused and who waits for memory, which a released program gives back', async () => {
  await bench.client.call(bench.pool, 'pool.configure', { sessionAdmission: 'kv' });
  const kvTokens = async () => (await bench.client.call(bench.pool, 'server.list', {})).servers[0]!.load?.kvTokens;
  await expect.poll(kvTokens).toBe(KV_TOKENS);
  const programs = async () => (await gateway.get('/programs')).body;
  for (const program of ['a', 'b']) expect((await turn(program, 2_000)).status).toBe(200);
  await expect.poll(programs).toMatchObject({ a: { status: 'acting' }, b: { total_tokens: 2_003, status: 'acting' } });
  // The context of a grows, and its call does not end: both contexts exceed the memory.
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
  const grown = turn('a', 9_000, 100);
  await expect.poll(programs).toMatchObject({
    a: { total_tokens: 9_000, status: 'reasoning', state: 'active' },
    b: { status: 'acting', state: 'paused' },
  });
  const waiting = turn('b', 2_100);
  await expect.poll(programs).toMatchObject({ b: { status: 'reasoning', state: 'paused' } });
  const released = await gateway.post('/programs/release', { program_id: 'a' });
  expect(released.body).toEqual({ program_id: 'a', released: true });
  await gateway.post('/abort_requests', { request_ids: ['a-9000'] });
  expect((await grown).body.choices[0].finish_reason).toBe('abort');
  expect((await waiting).status).toBe(200);
  await expect
    .poll(programs)
    .toEqual({ b: expect.objectContaining({ total_tokens: 2_103, status: 'acting', state: 'active' }) });
});

it('/programs/release says whether the program was there, and refuses a body without a valid program', async () => {
  await chat({ program_id: 7 });
  await expect.poll(sessions).toMatchObject([{ leases: 0 }]);
  for (const released of [true, false]) {
    expect(await gateway.post('/programs/release', { program_id: 7 })).toMatchObject({
      status: 200,
      body: { program_id: '7', released },
    });
  }
  for (const body of [{}, { program_id: ['a'] }, { program_id: 'x'.repeat(600) }]) {
    const { status, body: reply } = await gateway.post('/programs/release', body);
    expect([status, reply.error.type, reply.error.param]).toEqual([400, 'VALIDATION_FAILED', 'program_id']);
  }
});

it('a program is known to its key only', async () => {
  const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  const redis = connectRedis({ url: testRedisUrl() });
  const store = new CredentialStore(redis, bench.prefix);
  const keys = await Promise.all(['a', 'b'].map((name) => store.create({ name, role: 'client' })));
  const [a, b] = keys.map(({ token }) => ({ authorization: `Bearer ${token}` }));
  await chat({ program_id: 'p' }, guarded, a);
  const programs = async (headers: object) => {
    const answer = await fetch(`${guarded.url}/programs`, { headers: { ...headers } });
    return Object.keys((await answer.json()) as object);
  };
  expect([await programs(a!), await programs(b!)]).toEqual([['p'], []]);
  expect((await guarded.post('/programs/release', { program_id: 'p' }, b)).body.released).toBe(false);
  expect((await guarded.post('/programs/release', { program_id: 'p' }, a)).body.released).toBe(true);
  await guarded.close();
  redis.disconnect();
});

it('an engine that closes sessions gets the end of a program, under the name that its calls had', async () => {
  const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  const redis = connectRedis({ url: testRedisUrl() });
  const key = await new CredentialStore(redis, bench.prefix).create({ name: 'a', role: 'client' });
  const headers = { authorization: `Bearer ${key.token}` };
  await system.startSecond({ dialect: 'sglang', sessionCache: true });
  await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
  // The registration probes the engine.
  await gateway.post('/workers', { url: system.second.url });
  const session = async () => (await fetchState(system.second.url)).sessions;
  const generate = { input_ids: [1, 2], sampling_params: { max_new_tokens: 2 } };
  await guarded.post('/generate', { ...generate, program_id: 'ü p' }, headers);
  await chat({ program_id: 'ü p' }, guarded, headers);
  const [{ sessionId } = { sessionId: '' }] = await sessions();
  expect([sessionId.endsWith('/ü p'), await session()]).toEqual([true, { open: [sessionId], closed: 0 }]);
  await guarded.post('/programs/release', { program_id: 'ü p' }, headers);
  await expect.poll(session).toEqual({ open: [], closed: 1 });
  await guarded.close();
  redis.disconnect();
});

it('a program ends with the job that its requests have named', async () => {
  await bench.client.call(bench.pool, 'pool.configure', { sessionAdmission: 'kv' });
  for (const job of ['a', 'b']) await chat({ program_id: job.toUpperCase() }, gateway, { 'x-broomwagon-job': job });
  await expect.poll(async () => (await sessions()).map(({ leases }) => leases)).toEqual([0, 0]);
  expect(await bench.client.call(bench.pool, 'job.delete', { job: 'a' })).toMatchObject({ state: 'deleted' });
  expect(await sessions()).toMatchObject([{ sessionId: 'B' }]);
});

it('counts the longest of two turns at the same time, then the context of a program that shrinks', async () => {
  await bench.client.call(bench.pool, 'pool.configure', { sessionAdmission: 'kv' });
  const total = async () => (await gateway.get('/programs')).body.p?.total_tokens;
  const calls = async () => (await sessions()).map(({ leases }) => leases);
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
  const long = turn('p', 3_000, 100);
  await expect.poll(calls).toEqual([1]);
  expect((await turn('p', 2_000)).status).toBe(200);
  await expect.poll(calls).toEqual([1]);
  expect(await total()).toBe(3_000);
  await gateway.post('/abort_requests', { request_ids: ['p-3000'] });
  await long;
  await expect.poll(calls).toEqual([0]);
  expect((await turn('p', 100)).status).toBe(200);
  await expect.poll(total).toBe(103);
  const refused = await turn('p', 100, 1e12);
  expect([refused.status, refused.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
  expect(await total()).toBe(103);
});

it('takes ids of 480 bytes of a program and its parent, and refuses two parents of one turn', async () => {
  await bench.client.call(bench.pool, 'pool.configure', { sessionAdmission: 'kv' });
  const [parent, child] = ['ü'.repeat(240), 'n'.repeat(480)];
  expect((await chat({ program_id: child, parent_session_id: parent })).status).toBe(200);
  await expect.poll(sessions).toMatchObject([{ sessionId: child, parentSessionId: parent }]);
  const other = { 'x-broomwagon-parent-session': 'other' };
  const refused = await chat({ program_id: child, parent_session_id: parent }, gateway, other);
  expect([refused.status, refused.body.error.param]).toEqual([400, 'parent_session_id']);
  const changed = await chat({ program_id: child, parent_session_id: 'other' });
  expect([changed.status, changed.body.error.type]).toEqual([409, 'SESSION_CONFLICT']);
  const circle = await chat({ program_id: parent, parent_session_id: child });
  expect([circle.status, circle.body.error.type]).toEqual([409, 'SESSION_CONFLICT']);
});
