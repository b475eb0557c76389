import { BroomwagonError } from '@broomwagon/contracts';
import { connectRedis, CredentialStore, TrajectoryStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { beforeEach, expect, it, vi } from 'vitest';
import { inject } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, open, type Reply } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

const PROMPT = [11, 12, 13];

const system = useGateway(60);
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

const body = (ids: number[], maxNewTokens = 4, more: object = {}) => ({
  input_ids: ids,
  sampling_params: { max_new_tokens: maxNewTokens },
  ...more,
});
const recorded = { 'x-broomwagon-trajectory': 'record' };
const stateIn = ({ headers }: Reply) => headers['x-broomwagon-trajectory'];
const trajectory = async (id: string, from = gateway) => (await from.get(`/sessions/${id}/trajectory`)).body;
const ones = (count: number) => Array.from({ length: count }, () => 1);
const zeros = (count: number) => Array.from({ length: count }, () => 0);

it('has the turns of a session one after the other, from any replica', async () => {
  const opened = await gateway.post('/sessions', { job: 'j/1' });
  const { session_id: id, path, created } = opened.body;
  expect([opened.status, path, created]).toEqual([200, `/sessions/${id}/v1`, true]);
  const turns: { ids: number[]; logprobs: number[] }[] = [];
  const prompt = [...PROMPT];
  for (let turn = 1; turn <= 3; turn++) {
    const reply = await gateway.post(`/sessions/${id}/generate`, body(prompt, 4, { return_logprob: turn > 1 }));
    expect(stateIn(reply)).toBe(`recorded:${turn}`);
    expect(reply.headers['x-broomwagon-stamp']).toMatch(/^[0-9a-f]{16}\.\d+$/);
    const { output_ids: ids, meta_info: meta } = reply.body;
    // Log probabilities are recorded, but not sent to a client that did not request them.
    expect(meta.output_token_logprobs === undefined).toBe(turn === 1);
    turns.push({ ids, logprobs: meta.output_token_logprobs?.map(([logprob]: [number]) => logprob) });
    prompt.push(...ids, 100 + turn, 200 + turn);
  }
  const other = await Gateway.start(bench.prefix, bench.pool);
  await gateway.close();
  gateway = system.gateway = other;
  const { branches, missing, ...about } = await trajectory(id);
  const stamp = expect.stringMatching(/^[0-9a-f]{16}\.\d+$/);
  expect(about).toEqual({ session_id: id, job: 'j/1', created_at_ms: expect.any(Number), stamp });
  expect([missing, branches.length]).toEqual([[], 1]);
  const [branch] = branches;
  expect(branch.token_ids).toEqual(prompt.slice(0, -2));
  const mask = [...zeros(3), ...ones(4), 0, 0, ...ones(4), 0, 0, ...ones(4)];
  expect(branch.loss_mask).toEqual(mask);
  expect(branch.logprobs.slice(9, 13)).toEqual(turns[1]!.logprobs);
  expect(branch.logprobs.map((one: number) => (one === 0 ? 0 : 1))).toEqual(mask);
  expect(branch.weight_versions).toEqual([3, 9, 15].map((start) => ({ version: '0', start, end: start + 4 })));
  expect([branch.finish_reason, branch.shared_tokens]).toEqual(['length', 0]);
  expect(branch.turns.map((turn: { turn: number; start: number }) => [turn.turn, turn.start])).toEqual([
    [1, 0],
    [2, 7],
    [3, 13],
  ]);
});

it('keeps forks apart, also of turns at the same time, and streams end with their recorded turn', async () => {
  const session = { session_id: 's/ü' };
  const first = await gateway.post('/sessions/s%2F%C3%BC/generate', body(PROMPT), recorded);
  const made: number[] = first.body.output_ids;
  const extended = [...PROMPT, ...made, 21];
  const [one, two] = await Promise.all([
    gateway.post('/generate', body(extended, 2, session), recorded),
    gateway.post('/generate', body([...extended, 22], 3, session), recorded),
  ]);
  const unrelated = await gateway.post('/generate', body([1, ...PROMPT, ...made], 2, session), recorded);
  expect([one, two, unrelated].map(({ status }) => status)).toEqual([200, 200, 200]);
  const streamed = await new Promise<[string, string]>((resolve) => {
    const request = { token_ids: extended, sampling_params: { max_tokens: 2 }, stream: true, ...session };
    const sent = open(`${gateway.url}/inference/v1/generate`, request, recorded, (response) => {
      response.resume().on('end', () => {
        resolve([response.headers['x-broomwagon-trajectory'] as string, response.trailers['x-broomwagon-trajectory']!]);
      });
    });
    sent.on('error', () => undefined);
  });
  expect(streamed).toEqual(['pending:5', 'recorded:5']);
  const { branches, missing } = await trajectory('s%2F%C3%BC');
  expect(missing).toEqual([]);
  const byTokens = branches.map((branch: { token_ids: number[] }) => branch.token_ids.slice(0, 9));
  expect(byTokens).toHaveLength(4);
  expect(byTokens.filter((ids: number[]) => ids[0] === 1)).toHaveLength(1);
  const shared = branches.map((branch: { shared_tokens: number }) => branch.shared_tokens);
  expect(shared.toSorted()).toEqual([0, 0, 7, 7]);
});

it('records a repeat once, on the same replica and on another', async () => {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 2 });
  const headers = { ...recorded, 'x-session-id': 's', 'idempotency-key': 'k' };
  const sent = open(`${gateway.url}/generate`, body(PROMPT, 8), headers);
  await expect.poll(() => gateway.metric('tokens_generated_total')).toBe(2);
  sent.destroy();
  expect((await trajectory('s')).missing).toMatchObject([{ turn: 1, reason: 'UNFINISHED' }]);
  const other = await Gateway.start(bench.prefix, bench.pool);
  const reply = await other.post('/generate', body(PROMPT, 8), headers);
  expect(stateIn(reply)).toBe('recorded:1');
  await gateway.post('/abort_request', { abort_all: true });
  await expect.poll(() => gateway.metric('gateway_turns_total')).toBe(1);
  const again = await other.post('/generate', body(PROMPT, 8), headers);
  expect(stateIn(again)).toBe('recorded:1');
  const { branches, missing } = await trajectory('s', other);
  expect(missing).toEqual([]);
  expect(branches.map((branch: { token_ids: number[] }) => branch.token_ids)).toEqual([
    [...PROMPT, ...again.body.output_ids],
  ]);
  await other.close();
});

it('records requests with one id and different bodies as turns of their own', async () => {
  const headers = { ...recorded, 'x-session-id': 's' };
  const send = (prompt: number[]) => gateway.post('/generate', { ...body(prompt), rid: 'r' }, headers);
  const replies = [await send(PROMPT), await send([...PROMPT, 9])];
  expect(replies.map(stateIn)).toEqual(['recorded:1', 'recorded:2']);
  expect((await trajectory('s')).branches).toHaveLength(2);
});

it('a turn that cannot be recorded is answered, and the trajectory marks it as missing', async () => {
  const full = await Gateway.start(bench.prefix, bench.pool, { payloadQuotaBytes: 20 });
  const headers = { ...recorded, 'x-session-id': 's' };
  const refused = await full.post('/generate', body(PROMPT), headers);
  expect([refused.status, stateIn(refused)]).toEqual([200, 'missing:1:PAYLOAD_STORE_FULL']);
  expect(refused.body.output_ids).toHaveLength(4);
  const text = await full.post('/generate', { text: 'a', sampling_params: { max_new_tokens: 2 } }, headers);
  expect([text.status, stateIn(text)]).toEqual([200, 'missing:2:NO_PROMPT_IDS']);
  await inject(bench.engine.url, { kind: 'error-400' });
  const failed = await full.post('/generate', body([5]), headers);
  expect([failed.status, stateIn(failed)]).toEqual([400, 'missing:3:ENGINE_REJECTED']);
  const { branches, missing } = await trajectory('s');
  expect(branches).toEqual([]);
  expect(missing.map(({ turn, reason }: { turn: number; reason: string }) => [turn, reason])).toEqual([
    [1, 'PAYLOAD_STORE_FULL'],
    [2, 'NO_PROMPT_IDS'],
    [3, 'ENGINE_REJECTED'],
  ]);
  await full.close();
});

it.each(['begin', 'sequences', 'record'] as const)(
  'a turn is recorded although Redis does not answer its first `%s` calls',
  async (name) => {
    const headers = { ...recorded, 'x-session-id': 's' };
    await gateway.post('/generate', body([...PROMPT, 1]), headers);
    const store = gateway.service.application.get(TrajectoryStore, { strict: false });
    const lost = new BroomwagonError('UNAVAILABLE', 'Redis does not answer');
    const call = vi.spyOn(store, name).mockRejectedValueOnce(lost).mockRejectedValueOnce(lost);
    // Nothing in this request tells that its session is recorded.
    const reply = await gateway.post('/generate', body(PROMPT), { 'x-session-id': 's' });
    expect([stateIn(reply), call.mock.calls.length]).toEqual(['recorded:2', 3]);
    expect((await trajectory('s')).branches).toHaveLength(2);
  },
);

it('is deleted with its session, and refuses wrong input', async () => {
  await gateway.post('/generate', body(PROMPT), { ...recorded, 'x-session-id': 's' });
  expect((await trajectory('s')).branches).toHaveLength(1);
  for (let repeat = 0; repeat < 2; repeat++) {
    expect((await fetch(`${gateway.url}/sessions/s`, { method: 'DELETE' })).status).toBe(200);
  }
  expect((await trajectory('s')).error).toMatchObject({ type: 'SESSION_NOT_FOUND', code: 404 });
  expect((await bench.client.call(bench.pool, 'lb.status', {})).sessions).toBe(0);
  expect(stateIn(await gateway.post('/sessions/s/generate', body(PROMPT)))).toBeUndefined();
  expect((await gateway.post('/generate', body(PROMPT), recorded)).body.error.param).toBe('x-broomwagon-trajectory');
  expect((await gateway.post('/sessions', { session_id: 7 })).body.error.param).toBe('session_id');
  expect((await gateway.post('/sessions', { job: '' })).body.error.param).toBe('job');
});

it('belongs to the key that has started it', async () => {
  const redis = connectRedis({ url: testRedisUrl() });
  const credentials = new CredentialStore(redis, bench.prefix);
  const keys = await Promise.all(
    (['client', 'client', 'operator'] as const).map((role) => credentials.create({ name: 'n', role })),
  );
  const [mine, theirs, operator] = keys.map(({ token }) => ({ authorization: `Bearer ${token}` }));
  const keyed = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  expect((await keyed.post('/sessions', { session_id: 's' }, mine)).body.created).toBe(true);
  expect((await keyed.post('/sessions', { session_id: 's' }, mine)).body.created).toBe(false);
  expect((await keyed.post('/sessions', { session_id: 's' }, theirs)).status).toBe(403);
  expect(stateIn(await keyed.post('/sessions/s/generate', body(PROMPT), theirs))).toBe('missing::FORBIDDEN');
  expect(stateIn(await keyed.post('/sessions/s/generate', body(PROMPT), mine))).toBe('recorded:1');
  const statusFor = async (key: typeof mine) => (await keyed.get('/sessions/s/trajectory', key)).status;
  expect([await statusFor(mine), await statusFor(theirs), await statusFor(operator)]).toEqual([200, 404, 200]);
  const listedFor = async (key: typeof mine) => (await keyed.get('/sessions', key)).body.length;
  expect([await listedFor(mine), await listedFor(theirs), await listedFor(operator)]).toEqual([1, 0, 1]);
  const sessions = async () => (await bench.client.call(bench.pool, 'lb.status', {})).sessions;
  expect(await sessions()).toBe(2);
  expect((await fetch(`${keyed.url}/sessions/s`, { method: 'DELETE', headers: operator })).status).toBe(200);
  expect([await sessions(), await statusFor(mine)]).toEqual([1, 404]);
  await keyed.close();
  redis.disconnect();
});
