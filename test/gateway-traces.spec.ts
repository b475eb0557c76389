import { expect, it } from 'vitest';
import { generate, PROMPT, useGateway } from './system/gateway-bench';

const system = useGateway(3, { speed: 20 });
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
    trace_id: second.body.meta_info.id,
    prompt_token_ids: prompt,
    completion_token_ids: second.body.output_ids,
    logprobs: second.body.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
    finish_reason: 'length',
    weight_version: 0,
    token_counts: { prompt: 7, completion: 2 },
    metadata: { turn: 2 },
  });
  expect((await traces('job/7:0', '?limit=1')).body).toEqual([body[0]]);
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

it('refuses sampling parameters of a session, which it would not set, and has nothing to flush', async () => {
  const { status, body } = await system.gateway.post('/sessions', { sampling_params: { temperature: 0.6 } });
  expect([status, body.error.param]).toEqual([400, 'sampling_params']);
  expect((await system.gateway.post('/sessions', { sampling_params: {}, metadata: { a: 1 } })).status).toBe(201);
  expect((await system.gateway.post('/admin/flush', {})).body).toEqual({ status: 'flushed' });
});
