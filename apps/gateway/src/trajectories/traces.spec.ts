import { expect, it } from 'vitest';
import { generate, PROMPT, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(8, { speed: 20 });
const traces = async (id: string, query = '') => system.gateway.get(`/sessions/${id}/traces${query}`);

it('gives the turns of a session as traces of rllm, which its client reads', async () => {
  await system.gateway.post('/sessions', { session_id: 'job/7:0' });
  const path = '/sessions/job/7:0/generate';
  const first = (await system.gateway.post(path, generate(3))).body.output_ids;
  const prompt = [...PROMPT, ...first, 99];
  const second = await system.gateway.post(path, { ...generate(2), input_ids: prompt });
  const { status, body } = await traces('job/7:0');
  expect([status, body.length]).toEqual([200, 2]);
  expect(body[0]).toMatchObject({ session_id: 'job/7:0', prompt_token_ids: PROMPT, completion_token_ids: first });
  expect(body[1]).toMatchObject({
    prompt_token_ids: prompt,
    completion_token_ids: second.body.output_ids,
    logprobs: second.body.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
    finish_reason: 'length',
    weight_version: 0,
    token_counts: { prompt: 7, completion: 2 },
    metadata: { turn: 2, response_id: second.body.meta_info.id },
  });
  expect((await traces('job/7:0', '?limit=1')).body).toEqual([body[0]]);
  expect((await system.gateway.get(`/traces/${body[1].trace_id}`)).body).toEqual(body[1]);
  const others = [`${body[1].trace_id}0`, 'missing', `${Buffer.from('other').toString('base64url')}.1`];
  const replies = await Promise.all(others.map((id) => system.gateway.get(`/traces/${id}`)));
  expect(replies.map(({ status }) => status)).toEqual([404, 404, 404]);
  const wrong = await Promise.all(['?since=1', '?limit=a'].map((query) => traces('job/7:0', query)));
  expect(wrong.map((reply) => [reply.status, reply.body.error.param])).toEqual([
    [400, 'since'],
    [400, 'limit'],
  ]);
  expect((await traces('other')).status).toBe(404);
});

it('deletes several sessions by one call', async () => {
  for (const session_id of ['a', 'b']) await system.gateway.post('/sessions', { session_id });
  expect((await traces('a')).body).toEqual([]);
  const one = await fetch(`${system.gateway.url}/sessions/c`, { method: 'DELETE' });
  expect(await one.json()).toEqual({ deleted: 0 });
  const { body } = await system.gateway.post('/sessions/batch_delete', { session_ids: ['a', 'b', 'c'] });
  expect(body).toEqual({ deleted: 2 });
  expect((await traces('a')).status).toBe(404);
  expect((await system.gateway.post('/sessions/batch_delete', { session_ids: 'a' })).body.error.param).toBe(
    'session_ids',
  );
});

it('answers a flush without an effect', async () => {
  expect((await system.gateway.post('/admin/flush', {})).body).toEqual({ status: 'flushed' });
});

it('lists sessions, the newest first, and describes one, also with slashes in its id', async () => {
  const id = 'job/7:0';
  await system.gateway.post('/sessions', { session_id: 'old' });
  await system.gateway.post('/sessions', { session_id: id, metadata: { prompt: 42 } });
  await system.gateway.post(`/sessions/${id}/generate`, generate(1));
  const { body } = await system.gateway.get(`/sessions/${id}`);
  expect(body).toMatchObject({ session_id: id, trace_count: 1, metadata: { prompt: 42 }, job: 'gateway' });
  const listed = (await system.gateway.get('/sessions')).body;
  expect(listed.map((one: { session_id: string }) => one.session_id).toSorted()).toEqual([id, 'old']);
  expect(listed).toContainEqual(body);
  expect((await system.gateway.get('/sessions?limit=1')).body).toHaveLength(1);
  expect((await system.gateway.get(`/sessions?since=${body.created_at + 60}`)).body).toEqual([]);
  expect((await system.gateway.get('/sessions/job/none')).status).toBe(404);
  const deleted = await fetch(`${system.gateway.url}/sessions/${id}`, { method: 'DELETE' });
  expect(await deleted.json()).toEqual({ deleted: 1 });
});

it.each([[7], [['a']], [{ text: 'a'.repeat(5_000) }]])('refuses metadata %#', async (metadata) => {
  const { status, body } = await system.gateway.post('/sessions', { metadata });
  expect([status, body.error.param]).toEqual([400, 'metadata']);
});

it('lists engines for the client of rllm, and adds and removes them', async () => {
  const { url } = system.second;
  const added = await system.gateway.post('/admin/workers', { url: `${url}/v1`, weight: 1, api_path: '/v1' });
  expect(added.body).toMatchObject({ url, api_path: '/v1' });
  const { body } = await system.gateway.get('/admin/workers');
  expect(body.map((worker: { url: string }) => worker.url)).toContain(url);
  expect((await system.gateway.get('/health/workers')).body.total).toBe(body.length);
  const path = `${system.gateway.url}/admin/workers/${encodeURIComponent(added.body.worker_id)}`;
  expect(await (await fetch(path, { method: 'DELETE' })).json()).toEqual({ removed: added.body.worker_id });
  expect((await fetch(path, { method: 'DELETE' })).status).toBe(404);
  const refused = [{}, { url, weight: 2 }, { url, api_path: '/v2' }, { url, worker_id: 'w' }, { url, model_name: 'm' }];
  const replies = await Promise.all(refused.map((one) => system.gateway.post('/admin/workers', one)));
  const fields = replies.map((reply) => [reply.status, reply.body.error.param]);
  expect(fields).toEqual(['url', 'weight', 'api_path', 'worker_id', 'model_name'].map((field) => [400, field]));
});
