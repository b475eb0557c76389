import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { detectEngine } from '@broomwagon/engines';
import { loadConfig } from '@broomwagon/platform';
import { connectRedis, CredentialStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GatewayConfig } from '../apps/gateway/src/gateway.config';
import { inEngine, inject, startEngine, stateOf } from '../lab/engine-simulator/src/test-engine';
import { eventsOf, Gateway, open, post, type Reply } from './system/gateway';
import { ServiceBench } from './system/service-bench';

const PROMPT = [11, 12, 13];
/** Some seconds on the first engine; the second is much faster. */
const LONG = 150;
let bench: ServiceBench;
let gateway: Gateway;
let second: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 60);
});
afterAll(() => bench?.close());
beforeEach(async () => {
  await bench.begin(() => 8_000, 1, 'sglang');
  second = await startEngine('sglang', { speed: 20, lengths: { name: 'test', lengthOf: () => 8_000 } });
  await bench.register({ dialect: 'sglang' });
  gateway = await Gateway.start(bench.prefix, bench.pool);
});
afterEach(async () => {
  await gateway.close();
  await second.close();
  await expect.poll(() => leases()).toEqual({ leases: 0, waiters: 0 });
  await bench.engine.close();
  expect(await bench.findings()).toEqual([]);
});

/** A body with a seed, so that every engine generates the same tokens. */
const generate = (maxNewTokens: number, more: object = {}) => ({
  input_ids: PROMPT,
  sampling_params: { max_new_tokens: maxNewTokens, sampling_seed: 7 },
  return_logprob: true,
  ...more,
});
const registerSecond = (more: object = {}) =>
  bench.register({ serverId: 's2', instanceId: 'i2', endpoint: second.url, dialect: 'sglang', ...more });
/** What an engine answers that is not cut. */
const uncut = (maxNewTokens: number): Promise<Reply> => post(`${second.url}/generate`, generate(maxNewTokens));
async function leases(): Promise<{ leases: number; waiters: number }> {
  const { leases: held, waiters } = await bench.client.call(bench.pool, 'lb.status', {});
  return { leases: held, waiters };
}
/** Waits until a request on the first engine has some tokens. */
const hasTokens = () =>
  expect
    .poll(async () => Math.max(0, ...(await stateOf(bench.engine.url)).table.map((row) => row.made)))
    .toBeGreaterThan(5);
/** Begins a generation that the first engine stops sending in the middle. */
async function stalled(more: object = {}): Promise<{ reply: Promise<Reply> }> {
  await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
  const reply = gateway.post('/generate', generate(LONG, more));
  await expect.poll(() => metric('tokens_generated_total')).toBe(6);
  return { reply };
}
const metric = (name: string) => gateway.metric(name);
const isIdle = (url: string) => expect.poll(() => inEngine(url)).toBe(0);

function expectSame(reply: Reply, whole: Reply): void {
  expect(reply.status).toBe(200);
  const [a, b] = [reply.body, whole.body];
  expect(a.output_ids).toEqual(b.output_ids);
  expect(a.text).toBe(b.text);
  expect(a.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob)).toEqual(
    b.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
  );
  const { prompt_tokens: prompt, completion_tokens: completion, finish_reason: reason } = a.meta_info;
  expect([prompt, completion]).toEqual([b.meta_info.prompt_tokens, b.meta_info.completion_tokens]);
  expect(reason).toEqual(b.meta_info.finish_reason);
}

describe('/generate', () => {
  it('answers as the engine does, and says in headers what happened', async () => {
    const reply = await gateway.post('/generate', generate(40, { rid: 'own' }));
    expectSame(reply, await uncut(40));
    expect(reply.body.meta_info).toMatchObject({
      id: 'own',
      weight_version: '0',
      weight_versions: [{ version: '0', start: 0, end: 40 }],
    });
    expect(reply.headers).toMatchObject({
      'x-broomwagon-server': 's1',
      'x-broomwagon-attempts': '1',
      'x-broomwagon-weight-versions': '0:0-40',
      'x-broomwagon-weight-source': 'lease',
    });
  });

  it.each([false, true])('streams chunks up to [DONE]; incremental: %s', async (incremental) => {
    const other = await Gateway.start(bench.prefix, bench.pool, { incrementalStreams: incremental });
    const reply = await other.post('/generate', generate(60, { stream: true }));
    const events = eventsOf(reply.body) as Reply['body'][];
    expect(events.pop()).toBeNull();
    const whole = await uncut(60);
    const last = events.at(-1);
    expect(last.meta_info.finish_reason).toEqual({ type: 'length', length: 60 });
    const joined = incremental
      ? {
          text: events.map(({ text }) => text).join(''),
          output_ids: events.flatMap(({ output_ids: ids }) => ids),
          meta_info: {
            ...last.meta_info,
            output_token_logprobs: events.flatMap(({ meta_info: meta }) => meta.output_token_logprobs),
          },
        }
      : last;
    expectSame({ ...reply, body: joined }, whole);
    expect(events.slice(0, -1).every(({ meta_info: meta }) => meta.finish_reason === null)).toBe(true);
    await other.close();
  });

  it('passes on fields that it does not read, and fields of the engine back', async () => {
    const bodies: object[] = [];
    const engine = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += chunk));
      request.on('end', () => {
        if (request.url === '/generate') bodies.push(JSON.parse(text));
        response.writeHead(200, { 'content-type': request.url === '/generate' ? 'text/event-stream' : 'text/plain' });
        const meta_info = { finish_reason: { type: 'stop', matched: 2 }, completion_tokens: 1, prompt_tokens: 9 };
        const more = {
          weight_versions: [{ version: 'v3', start: 0, end: 1 }],
          routed_experts: 'AAAA',
          cached_tokens: 4,
        };
        response.end(
          `data: ${JSON.stringify({ text: 'x', output_ids: [5], meta_info: { ...meta_info, ...more } })}\n\n`,
        );
      });
    });
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
    await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
    await bench.register({ serverId: 's3', instanceId: 'i3', endpoint, dialect: 'sglang' });
    const sampling_params = { max_new_tokens: 5, dry_multiplier: 0.5, top_k: 3, stop: 'END' };
    const { body, headers } = await gateway.post('/generate', { text: 'Hello', lora_path: 'a', sampling_params });
    engine.closeAllConnections();
    engine.close();
    const expected = { ...sampling_params, stop: ['END'] };
    expect(bodies).toMatchObject([{ text: 'Hello', lora_path: 'a', stream: true, sampling_params: expected }]);
    expect(body).toMatchObject({
      text: 'x',
      output_ids: [5],
      meta_info: {
        finish_reason: { type: 'stop', matched: 2 },
        prompt_tokens: 9,
        cached_tokens: 4,
        routed_experts: 'AAAA',
        weight_version: 'v3',
        weight_versions: [{ version: 'v3', start: 0, end: 1 }],
      },
    });
    expect(headers['x-broomwagon-weight-source']).toBeUndefined();
  });

  it('keeps a session on its server, by each way to name it', async () => {
    await registerSecond();
    const { body: info } = await gateway.get('/get_server_info');
    expect(info.model_path).toBe('');
    const serverOf = async (path: string, headers: Record<string, string>, more: object = {}) =>
      (await gateway.post(path, generate(2, more), headers)).headers['x-broomwagon-server'];
    const first = await serverOf('/generate', { 'x-session-id': 'a' });
    const again = await Promise.all([
      serverOf('/generate', { 'x-smg-routing-key': 'a' }),
      serverOf('/sessions/a/generate', {}),
      serverOf('/generate', {}, { session_id: 'a' }),
      serverOf('/generate', { authorization: 'Bearer key.a' }),
    ]);
    expect(again).toEqual([first, first, first, first]);
    const { sessions } = await bench.client.call(bench.pool, 'lb.status', {});
    expect(sessions).toBe(1);
  });
});

describe('a response that is cut is continued on another engine', () => {
  it.each([false, true])('when its engine dies; streamed: %s', async (stream) => {
    const { reply } = await stalled({ stream });
    await registerSecond();
    await bench.engine.close();
    const { status, headers, body } = await reply;
    const last = stream ? (eventsOf(body).at(-2) as Reply['body']) : body;
    expectSame({ status, headers, body: last }, await uncut(LONG));
    expect((await stateOf(second.url)).resumeMismatches).toBe(0);
    if (!stream) expect(headers).toMatchObject({ 'x-broomwagon-server': 's2' });
    expect(last.meta_info.weight_versions).toEqual([{ version: '0', start: 0, end: LONG }]);
  });

  it.each(['close-mid-stream', 'end-mid-stream', 'error-in-stream', 'error-500', 'error-429', 'close', 'html'])(
    'when the engine fails: %s',
    async (kind) => {
      await inject(bench.engine.url, { kind, afterTokens: 7 });
      const reply = await gateway.post('/generate', generate(30));
      expectSame(reply, await uncut(30));
      expect(reply.headers['x-broomwagon-attempts']).toBe('2');
    },
  );

  it('when it is moved, and its lease moves with it', async () => {
    const { reply } = await stalled();
    await registerSecond();
    const [lease] = (await bench.client.call(bench.pool, 'lb.leases', {})).leases;
    // The lease keeps its id, and the call on the new server stalls too.
    await inject(second.url, { kind: 'stall', afterTokens: 6 });
    const moves = [{ leaseId: lease!.leaseId, targetServerId: 's2' }];
    await bench.client.call(bench.pool, 'rebalance.execute', { planId: 'p1', moves });
    const moved = async () => (await bench.client.call(bench.pool, 'rebalance.status', { planId: 'p1' })).results;
    await expect.poll(moved).toMatchObject([{ leaseId: lease!.leaseId, state: 'moved' }]);
    await expect.poll(() => metric('tokens_generated_total')).toBe(12);
    await bench.client.call(bench.pool, 'rebalance.execute', {
      planId: 'p2',
      moves: [{ leaseId: lease!.leaseId, targetServerId: 's1' }],
    });
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await uncut(LONG));
    expect(headers).toMatchObject({ 'x-broomwagon-server': 's1', 'x-broomwagon-attempts': '3' });
  });

  it('when the weights change, with both versions', async () => {
    const { reply } = await stalled();
    const sync = { syncId: 'w1', version: 1, mode: 'abort' as const, waitMs: 20_000 };
    const { running } = await bench.client.call(bench.pool, 'weights.begin', sync, { timeoutMs: 30_000 });
    expect(running).toBe(0);
    await bench.client.call(bench.pool, 'server.update', { serverId: 's1', weightVersion: 1 });
    await bench.client.call(bench.pool, 'weights.commit', { syncId: 'w1' });
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await uncut(LONG));
    const [before, after] = body.meta_info.weight_versions;
    expect([before.version, before.start, after.version, after.end]).toEqual(['0', 0, '1', LONG]);
    expect(before.end).toBe(after.start);
    expect(headers['x-broomwagon-weight-versions']).toBe(`0:0-${before.end},1:${before.end}-${LONG}`);
  });

  it('when its server is removed', async () => {
    const { reply } = await stalled();
    await registerSecond();
    await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await uncut(LONG));
    expect(headers['x-broomwagon-server']).toBe('s2');
    await isIdle(bench.engine.url);
  });

  it('not when that would change its tokens: it begins again, or ends with the error once tokens were sent', async () => {
    const sampling_params = { max_new_tokens: 30, sampling_seed: 7, regex: 'a*' };
    await inject(bench.engine.url, { kind: 'close-mid-stream', afterTokens: 7, count: 2 });
    const whole = await gateway.post('/generate', generate(30, { sampling_params }));
    expectSame(whole, await uncut(30));
    await inject(bench.engine.url, { kind: 'close-mid-stream', afterTokens: 7 });
    const cut = await gateway.post('/generate', generate(30, { sampling_params, stream: true }));
    expect(eventsOf(cut.body).at(-2)).toMatchObject({ error: { type: 'ENGINE_ERROR', retryable: true } });
  });
});

describe('an abort', () => {
  it.each([
    ['by id', { rid: 'r-1' }],
    ['by a prefix', { rid: 'r-', prefix: true }],
    ['of all', { abort_all: true }],
  ])('%s ends the response through any replica, with its tokens', async (_, body) => {
    const other = await Gateway.start(bench.prefix, bench.pool);
    const reply = gateway.post('/generate', generate(8_000, { rid: 'r-1' }));
    await hasTokens();
    expect((await other.post('/abort_request', body)).status).toBe(200);
    const { status, body: aborted } = await reply;
    expect(status).toBe(200);
    expect(aborted.meta_info.finish_reason).toMatchObject({ type: 'abort' });
    const whole = await uncut(aborted.output_ids.length);
    expect(aborted.output_ids).toEqual(whole.body.output_ids);
    await isIdle(bench.engine.url);
    await expect.poll(async () => (await other.get('/v1/loads?include=core')).body.loads[0].num_total_reqs).toBe(0);
    // The id may be used again at once.
    const again = async () => (await other.post('/generate', generate(3, { rid: 'r-1' }))).body.output_ids;
    await expect.poll(again).toHaveLength(3);
    await other.close();
  });

  it('that arrives before its request is remembered by every replica', async () => {
    const other = await Gateway.start(bench.prefix, bench.pool);
    await other.post('/abort_request', { rid: 'early' });
    const early = await other.post('/generate', generate(3, { rid: 'early' }));
    expect([early.body.meta_info.finish_reason.type, early.body.output_ids]).toEqual(['abort', []]);
    const typeOf = async (replica: Gateway) =>
      (await replica.post('/generate', generate(3, { rid: 'early' }))).body.meta_info.finish_reason.type;
    // An abort ends one generation: in time it is forgotten by the other replica too.
    await expect.poll(() => typeOf(gateway)).toBe('length');
    await expect
      .poll(async () => {
        await other.post('/abort_request', { rid: 'early' });
        return typeOf(gateway);
      })
      .toBe('abort');
    await other.close();
  });

  it.each([
    ['passed on', {}, 'abort'],
    ['continued if the client asks for it', { 'x-broomwagon-on-engine-abort': 'resume' }, 'length'],
  ])('that was made on the engine is %s', async (_, headers: Record<string, string>, type) => {
    const reply = gateway.post('/generate', generate(type === 'length' ? LONG : 8_000), headers);
    await hasTokens();
    await post(`${bench.engine.url}/abort_request`, { abort_all: true });
    const { body } = await reply;
    expect(body.meta_info.finish_reason.type).toBe(type);
    expect(body.output_ids).toEqual((await uncut(body.output_ids.length)).body.output_ids);
  });
});

describe('a stream of an engine that ends with [DONE] and without a reason', () => {
  it('is an abort on the engine: its tokens are passed on', async () => {
    await inject(bench.engine.url, { kind: 'done-mid-stream', afterTokens: 7 });
    const { status, body, headers } = await gateway.post('/generate', generate(30));
    expect([status, body.meta_info.finish_reason.type, headers['x-broomwagon-attempts']]).toEqual([200, 'abort', '1']);
    expect(body.output_ids).toEqual((await uncut(7)).body.output_ids);
  });
});

describe('a client that disconnects', () => {
  it.each([
    ['before tokens, in a queue', { stream: false }, 0],
    ['while it waits for the answer', { stream: false }, 64],
    ['in the middle of a stream', { stream: true }, 64],
  ])('%s frees engine and lease at once', async (_, more, maxInflight) => {
    if (maxInflight === 0) await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
    const sent = open(`${gateway.url}/generate`, generate(8_000, more));
    if (maxInflight > 0) await hasTokens();
    else await expect.poll(() => metric('gateway_generations_running')).toBe(1);
    sent.destroy();
    await isIdle(bench.engine.url);
    await expect.poll(leases).toEqual({ leases: 0, waiters: 0 });
    await expect.poll(() => metric('gateway_generations_running')).toBe(0);
  });

  it('in the middle of its body leaves nothing', async () => {
    const sent = open(`${gateway.url}/generate`, '{"input_ids":', { 'content-length': '100' });
    await new Promise<void>((resolve) => sent.once('socket', (socket) => socket.once('connect', () => resolve())));
    sent.destroy();
    expect((await gateway.get('/health')).status).toBe(200);
    expect(await leases()).toEqual({ leases: 0, waiters: 0 });
  });

  it.each([false, true])('and repeats its own id joins the generation; streamed: %s', async (stream) => {
    const body = generate(LONG, { rid: 'mine', stream });
    const sent = open(`${gateway.url}/generate`, body);
    await hasTokens();
    sent.destroy();
    const other = await gateway.post('/generate', generate(LONG + 1, { rid: 'mine' }));
    expect([other.status, other.body.error.type]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const again = gateway.post('/generate', body);
    await expect.poll(() => metric('gateway_joined_total')).toBe(1);
    const reply = await again;
    const last = stream ? (eventsOf(reply.body).at(-2) as Reply['body']) : reply.body;
    expectSame({ ...reply, body: last }, await uncut(LONG));
    expect((await stateOf(bench.engine.url)).requests.received).toBe(1);
  });

  it('and does not come back ends its generation after rejoinMs', async () => {
    const other = await Gateway.start(bench.prefix, bench.pool, { rejoinMs: 100 });
    const sent = open(`${other.url}/generate`, generate(8_000, { rid: 'mine' }));
    await hasTokens();
    sent.destroy();
    await isIdle(bench.engine.url);
    await expect.poll(leases).toEqual({ leases: 0, waiters: 0 });
    await other.close();
  });
});

describe('input that is wrong', () => {
  const sampling = (fields: object) => ({ ...generate(3), sampling_params: fields });
  const CASES: [string, object | string, number, string, string?][] = [
    ['no JSON', '{"input_ids":', 400, 'MALFORMED_JSON'],
    ['a list', '[]', 400, 'MALFORMED_JSON'],
    ['no prompt', {}, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['two prompts', { input_ids: [1], text: 'a' }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['an empty prompt', { input_ids: [] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['ids of another type', { input_ids: ['a'] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch of ids', { input_ids: [[1], [2]] }, 400, 'VALIDATION_FAILED', 'input_ids'],
    ['a batch of texts', { text: ['a', 'b'] }, 400, 'VALIDATION_FAILED', 'text'],
    ['a list of ids of requests', { ...generate(1), rid: ['a'] }, 400, 'VALIDATION_FAILED', 'rid'],
    ['n of 10,000', sampling({ n: 10_000 }), 400, 'VALIDATION_FAILED', 'sampling_params.n'],
    ['no budget', sampling({ max_new_tokens: 0 }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a budget as text', sampling({ max_new_tokens: '9' }), 400, 'VALIDATION_FAILED', 'sampling_params.max_new_tokens'],
    ['a number as text', sampling({ top_p: '1' }), 400, 'VALIDATION_FAILED', 'sampling_params.top_p'],
    ['sampling of another type', sampling([1]), 400, 'VALIDATION_FAILED', 'sampling_params'],
    ['a stop list of 1 MB', sampling({ stop: ['x'.repeat(1e6)] }), 400, 'VALIDATION_FAILED'],
  ];
  it('is refused before it reaches an engine', async () => {
    for (const [name, body, status, code, param] of CASES) {
      const { status: answered, body: reply } = await gateway.post('/generate', body);
      expect([answered, reply.error.type, reply.error.retryable], name).toEqual([status, code, false]);
      if (param !== undefined) expect(reply.error.param, name).toBe(param);
    }
    expect((await stateOf(bench.engine.url)).requests.received).toBe(0);
  });

  it('in headers, size, method or path is refused', async () => {
    const wrong = await gateway.post('/generate', generate(3), { 'x-broomwagon-priority': 'high' });
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-broomwagon-priority']);
    const far = await gateway.post('/generate', generate(3), { 'x-broomwagon-priority': '12' });
    expect([far.status, far.body.error.type]).toEqual([400, 'VALIDATION_FAILED']);
    expect((await gateway.get('/generate')).status).toBe(405);
    expect((await gateway.get('/nothing')).status).toBe(404);
    const flood = await gateway.post('/generate', generate(3), { 'x-flood': 'x'.repeat(40_000) });
    expect(flood.status).toBe(431);
    const small = await Gateway.start(bench.prefix, bench.pool, { maxBodyBytes: 1_024 });
    const large = await small.post('/generate', { text: 'x'.repeat(2_000) });
    expect([large.status, large.body.error.type]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    await small.close();
  });

  it('for the engine is answered with what the engine says', async () => {
    await inject(bench.engine.url, { kind: 'error-400' });
    const reply = await gateway.post('/generate', generate(3));
    expect([reply.status, reply.body.error.type]).toEqual([422, 'ENGINE_REJECTED']);
    expect(reply.body.error.message).toContain('simulated refusal');
  });
});

describe('/inference/v1/generate', () => {
  const tokens = (maxTokens: number, more: object = {}) => ({
    token_ids: PROMPT,
    model: 'simulated',
    cache_salt: 'v1',
    sampling_params: { max_tokens: maxTokens, seed: 7, logprobs: 0 },
    ...more,
  });
  const expectTokens = async (choice: Reply['body']) => {
    const { body: whole } = await uncut(choice.token_ids.length);
    expect(choice.token_ids).toEqual(whole.output_ids);
    expect(choice.logprobs.content.map(({ token }: { token: string }) => token)).toEqual(
      whole.output_ids.map((id: number) => `token_id:${id}`),
    );
    expect(choice.logprobs.content.map(({ logprob }: { logprob: number }) => logprob)).toEqual(
      whole.meta_info.output_token_logprobs.map(([logprob]: [number]) => logprob),
    );
  };

  it('answers with token ids, logprobs and usage', async () => {
    const { status, body } = await gateway.post('/inference/v1/generate', tokens(40, { request_id: 'q' }));
    expect([status, body.request_id]).toEqual([200, 'q']);
    expect(body.choices).toMatchObject([
      { index: 0, finish_reason: 'length', weight_versions: [{ version: '0', start: 0, end: 40 }] },
    ]);
    expect(body.usage).toEqual({ prompt_tokens: 3, completion_tokens: 40, total_tokens: 43 });
    await expectTokens(body.choices[0]);
  });

  it.each([false, true])('is continued on an engine of another dialect; streamed: %s', async (stream) => {
    const vllm = await startEngine('vllm', { speed: 20, lengths: { name: 'test', lengthOf: () => 8_000 } });
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 6 });
    const reply = gateway.post('/inference/v1/generate', tokens(LONG, { stream }));
    await expect.poll(() => metric('tokens_generated_total')).toBe(6);
    await bench.register({ serverId: 's3', instanceId: 'i3', endpoint: vllm.url, dialect: 'vllm', model: 'simulated' });
    await bench.engine.close();
    const { body } = await reply;
    if (!stream) await expectTokens(body.choices[0]);
    else {
      const events = eventsOf(body) as Reply['body'][];
      expect(events.pop()).toBeNull();
      const choices = events.map((event) => event.choices[0]);
      const ids = choices.flatMap(({ token_ids: some }) => some);
      const content = choices.flatMap(({ logprobs }) => logprobs.content);
      await expectTokens({ token_ids: ids, logprobs: { content } });
      expect(choices.map(({ finish_reason: reason }) => reason)).toEqual([...choices.slice(1).fill(null), 'length']);
      expect(events.at(-1).usage.completion_tokens).toBe(LONG);
    }
    const { resumeMismatches, requests } = await stateOf(vllm.url);
    expect([resumeMismatches, requests.received]).toEqual([0, 1]);
    await vllm.close();
  });

  it('refuses input that is wrong', async () => {
    const wrong: [string, object, string][] = [
      ['no prompt', { token_ids: undefined }, 'token_ids'],
      ['a prompt of text', { token_ids: 'a' }, 'token_ids'],
      ['an empty prompt', { token_ids: [] }, 'token_ids'],
      ['images', { features: { image: 1 } }, 'features'],
      ['no budget', { sampling_params: {} }, 'sampling_params.max_tokens'],
      ['n of 10,000', { sampling_params: { max_tokens: 1, n: 10_000 } }, 'sampling_params.n'],
      ['logprobs of more tokens', { sampling_params: { max_tokens: 1, logprobs: 5 } }, 'sampling_params.logprobs'],
      ['a list as id', { request_id: ['a'] }, 'request_id'],
    ];
    for (const [name, more, expected] of wrong) {
      const { status, body } = await gateway.post('/inference/v1/generate', tokens(1, more));
      expect([status, body.error.type, body.error.param], name).toEqual([400, 'VALIDATION_FAILED', expected]);
    }
  });

  it('has the models of the pool beside it', async () => {
    await registerSecond({ model: 'large', capabilities: { maxModelTokens: 4_096 } });
    const { status, body } = await gateway.get('/v1/models');
    const models = body.data.map(({ id, max_model_len: length }: Record<string, unknown>) => [id, length]);
    expect([status, body.object, models]).toEqual([200, 'list', expect.arrayContaining([['large', 4_096]])]);
  });
});

describe('keys', () => {
  it('may have limits, of generations at the same time and of requests in a minute', async () => {
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, bench.prefix);
    const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
    const keyOf = async (limits: { maxGenerations?: number; maxPerMinute?: number }) => {
      const { token } = await store.create({ name: 'a', role: 'client', ...limits });
      return { authorization: `Bearer ${token}` };
    };
    const narrow = await keyOf({ maxGenerations: 1 });
    const running = guarded.post('/generate', generate(8_000), narrow);
    await hasTokens();
    const second = await guarded.post('/generate', generate(1), narrow);
    expect([second.status, second.body.error.type, second.headers['retry-after']]).toEqual([429, 'RATE_LIMITED', '1']);
    expect((await guarded.post('/generate', generate(1), await keyOf({}))).status).toBe(200);
    await guarded.post('/abort_request', { abort_all: true }, narrow);
    await running;
    expect((await guarded.post('/generate', generate(1), narrow)).status).toBe(200);
    const rare = await keyOf({ maxPerMinute: 2 });
    const replies = [];
    for (let request = 0; request < 3; request++) replies.push(await guarded.get('/v1/models', rare));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(Number(replies[2]!.headers['retry-after'])).toBeGreaterThan(1);
    await guarded.close();
    redis.disconnect();
  });

  it('are needed outside loopback, and are tokens of the role client with this pool', async () => {
    const env = { API_KEYS: 'off', HTTP_HOST: '0.0.0.0' };
    expect(() => loadConfig(GatewayConfig, { env })).toThrow(/API_KEYS: can be off only if/);
    const redis = connectRedis({ url: testRedisUrl() });
    const store = new CredentialStore(redis, bench.prefix);
    const guarded = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
    const statusOf = async (token: string | undefined, path = '/generate') => {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return (await guarded.post(path, generate(1), headers)).status;
    };
    const client = await store.create({ name: 'a', role: 'client', pools: [bench.pool] });
    const elsewhere = await store.create({ name: 'b', role: 'client', pools: ['another'] });
    const viewer = await store.create({ name: 'c', role: 'viewer' });
    expect(await statusOf(undefined)).toBe(401);
    expect(await statusOf('bw_0000000000000000_wrong')).toBe(401);
    expect(await statusOf(elsewhere.token)).toBe(403);
    expect(await statusOf(viewer.token)).toBe(403);
    expect(await statusOf(client.token)).toBe(200);
    expect(await statusOf(`${client.token}.session`)).toBe(200);
    expect(await statusOf(undefined, '/abort_request')).toBe(401);
    expect((await guarded.get('/health')).status).toBe(200);
    const { sessions } = await bench.client.call(bench.pool, 'lb.status', {});
    expect(sessions).toBe(1);

    const running = guarded.post('/generate', generate(8_000, { rid: 'r' }), {
      authorization: `Bearer ${client.token}`,
    });
    await hasTokens();
    const others = await store.create({ name: 'd', role: 'client' });
    await guarded.post('/abort_request', { abort_all: true }, { authorization: `Bearer ${others.token}` });
    expect((await leases()).leases).toBe(1);
    const operator = await store.create({ name: 'e', role: 'operator' });
    await guarded.post('/abort_request', { abort_all: true }, { authorization: `Bearer ${operator.token}` });
    expect((await running).body.meta_info.finish_reason.type).toBe('abort');
    await guarded.close();
    redis.disconnect();
  });
});

describe('the replica', () => {
  it('is an SGLang server to a probe', async () => {
    const { adapter, model, capabilities } = await detectEngine(gateway.url);
    expect([adapter.dialect, model, capabilities.tokenIdsOut]).toEqual(['sglang', '', true]);
    const prompt = { promptTokenIds: PROMPT };
    const { tokenIds } = await adapter.generate({ engineRequestId: 'x', prompt, maxTokens: 8, sampling: { seed: 7 } });
    expect(tokenIds).toEqual((await uncut(8)).body.output_ids);
    expect((await gateway.get('/health_generate')).status).toBe(200);
    await bench.client.call(bench.pool, 'server.cordon', { serverId: 's1' });
    const unready = await gateway.get('/health_generate');
    expect([unready.status, unready.headers['retry-after']]).toEqual([503, '1']);
    expect((await gateway.get('/readyz')).status).toBe(200);
  });

  it('ends what runs when it is shut down, with an error that may be repeated', async () => {
    const reply = gateway.post('/generate', generate(8_000));
    await hasTokens();
    await gateway.close();
    const { status, body } = await reply;
    expect([status, body.error.type, body.error.retryable]).toEqual([503, 'SHUTTING_DOWN', true]);
    await isIdle(bench.engine.url);
    expect(await leases()).toEqual({ leases: 0, waiters: 0 });
  });

  it.each([
    ['the same body is continued', {}, 6],
    ['another body begins again', { more: 1 }, 0],
  ])('saves what runs for its repeat to another replica: %s', async (_, more, restored) => {
    const { reply } = await stalled({ rid: 'mine' });
    const other = await Gateway.start(bench.prefix, bench.pool);
    await gateway.close();
    expect((await reply).status).toBe(503);
    await registerSecond();
    await bench.client.call(bench.pool, 'server.remove', { serverId: 's1' });
    expectSame(await other.post('/generate', generate(LONG, { rid: 'mine', ...more })), await uncut(LONG));
    expect(await other.metric('gateway_restored_tokens_total')).toBe(restored);
    expect((await stateOf(second.url)).resumeMismatches).toBe(0);
    await other.close();
  });
});
