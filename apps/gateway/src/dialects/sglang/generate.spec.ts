import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { workerCommandSubject } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { inject, fetchState } from '../../../../../lab/engine-simulator/src/test-engine';
import { parseEvents, Gateway, type Reply } from '../../../../../test/system/gateway';
import { expectSame, generate, LONG, PROMPT, useGateway } from '../../../../../test/system/gateway-bench';
import { detectEngine } from '../../../../../libs/engines/src/detect-engine';

const system = useGateway(30);

describe('/generate', () => {
  it('answers as the engine does, with server, attempts and weight versions in headers', async () => {
    const reply = await system.gateway.post('/generate', generate(40, { rid: 'own' }));
    expectSame(reply, await system.uncut(40));
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
    const other = await Gateway.start(system.bench.prefix, system.bench.pool, { incrementalStreams: incremental });
    const reply = await other.post('/generate', generate(60, { stream: true }));
    const events = parseEvents(reply.body) as Reply['body'][];
    expect(events.pop()).toBeNull();
    const whole = await system.uncut(60);
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
          input_token_logprobs: [[null, 9, null]],
        };
        response.end(
          `data: ${JSON.stringify({ text: 'x', output_ids: [5], meta_info: { ...meta_info, ...more } })}\n\n`,
        );
      });
    });
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
    await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
    await system.bench.register({ serverId: 's3', instanceId: 'i3', endpoint, dialect: 'sglang', probe: false });
    const sampling_params = { max_new_tokens: 5, repetition_penalty: 1.5, top_k: 3, stop: 'END' };
    const { body, headers } = await system.gateway.post('/generate', {
      text: 'Hello',
      lora_path: 'a',
      return_logprob: true,
      logprob_start_len: 0,
      sampling_params,
    });
    engine.closeAllConnections();
    engine.close();
    const expected = { ...sampling_params, stop: ['END'] };
    expect(bodies).toMatchObject([
      { text: 'Hello', lora_path: 'a', logprob_start_len: 0, stream: true, sampling_params: expected },
    ]);
    expect(body).toMatchObject({
      text: 'x',
      output_ids: [5],
      meta_info: {
        finish_reason: { type: 'stop', matched: 2 },
        prompt_tokens: 9,
        cached_tokens: 4,
        routed_experts: 'AAAA',
        input_token_logprobs: [[null, 9, null]],
        weight_version: 'v3',
        weight_versions: [{ version: 'v3', start: 0, end: 1 }],
      },
    });
    expect(headers['x-broomwagon-weight-source']).toBeUndefined();
  });

  it('takes the slashes of a session in the path, as they are and encoded', async () => {
    const paths = ['/sessions/job/7:0', '/sessions/job%2F7:0', '/sessions/job%2f7%3A0', ''];
    for (const path of paths) {
      const headers = { 'x-session-id': 'job/7:0' };
      for (const route of ['/v1/completions', '/generate']) {
        const body = { ...generate(2), prompt: PROMPT, max_tokens: 2 };
        expect((await system.gateway.post(path + route, body, headers)).status).toBe(200);
      }
      const { sessions } = await system.bench.client.call(system.bench.pool, 'lb.status', {});
      expect(sessions).toBe(1);
    }
    expect((await system.gateway.get('/sessions/job/7:0/v1/models')).status).toBe(200);
    expect((await system.gateway.post(`/sessions${'/a'.repeat(8_000)}/generate`, generate(2))).status).toBe(404);
  });

  it('keeps a session on its server, by each way to name it', async () => {
    await system.registerSecond();
    const { body: info } = await system.gateway.get('/get_server_info');
    expect(info.model_path).toBe('simulated');
    const fetchServer = async (path: string, headers: Record<string, string>, more: object = {}) =>
      (await system.gateway.post(path, generate(2, more), headers)).headers['x-broomwagon-server'];
    const first = await fetchServer('/generate', { 'x-session-id': 'a' });
    const again = await Promise.all([
      fetchServer('/generate', { 'x-smg-routing-key': 'a' }),
      fetchServer('/sessions/a/generate', {}),
      fetchServer('/generate', {}, { session_id: 'a' }),
      fetchServer('/generate', { authorization: 'Bearer key.a' }),
    ]);
    expect(again).toEqual([first, first, first, first]);
    const { sessions } = await system.bench.client.call(system.bench.pool, 'lb.status', {});
    expect(sessions).toBe(1);
  });
});

describe('a response that is cut is continued on another engine', () => {
  it.each([false, true])('when its engine dies; streamed: %s', async (stream) => {
    const { reply } = await system.stalled({ stream });
    await system.registerSecond();
    await system.bench.engine.close();
    const { status, headers, body } = await reply;
    const last = stream ? (parseEvents(body).at(-2) as Reply['body']) : body;
    expectSame({ status, headers, body: last }, await system.uncut(LONG));
    expect((await fetchState(system.second.url)).resumeMismatches).toBe(0);
    if (!stream) expect(headers).toMatchObject({ 'x-broomwagon-server': 's2' });
    expect(last.meta_info.weight_versions).toEqual([{ version: '0', start: 0, end: LONG }]);
  });

  it.each([
    'close-mid-stream',
    'end-mid-stream',
    'error-in-stream',
    'abort-with-503',
    'error-500',
    'error-429',
    'close',
  ])('when the engine fails: %s', async (kind) => {
    await inject(system.bench.engine.url, { kind, afterTokens: 7 });
    const reply = await system.gateway.post('/generate', generate(30));
    expectSame(reply, await system.uncut(30));
    expect(reply.headers['x-broomwagon-attempts']).toBe('2');
  });

  it('not on engines that answer in a wrong dialect: each is called once, and the response ends with the error', async () => {
    for (const attempts of ['1', '2']) {
      for (const { url } of [system.bench.engine, system.second]) await inject(url, { kind: 'html' });
      const { status, body, headers } = await system.gateway.post('/generate', generate(4));
      expect([status, body.error?.type, headers['x-broomwagon-attempts']]).toEqual([502, 'ENGINE_PROTOCOL', attempts]);
      await system.registerSecond();
    }
  });

  it('when it is moved, and its lease moves with it', async () => {
    const { reply } = await system.stalled();
    await system.registerSecond();
    const [lease] = (await system.bench.client.call(system.bench.pool, 'lb.leases', {})).leases;
    const { leaseId, workerId, workerEpoch } = lease!;
    const move = (planId: string, targetServerId: string) =>
      system.bench.client.call(system.bench.pool, 'rebalance.execute', {
        planId,
        moves: [{ leaseId, targetServerId }],
      });
    // The lease keeps its id, and the calls after the first two moves stall too.
    for (const { url } of [system.second, system.bench.engine]) await inject(url, { kind: 'stall', afterTokens: 6 });
    await move('p1', 's2');
    const moved = async () =>
      (await system.bench.client.call(system.bench.pool, 'rebalance.status', { planId: 'p1' })).results;
    await expect.poll(moved).toMatchObject([{ leaseId, state: 'moved' }]);
    await expect.poll(() => system.metric('tokens_generated_total')).toBe(12);
    await move('p2', 's1');
    await expect.poll(() => system.metric('tokens_generated_total')).toBe(18);
    // Commands are repeated: a late command of the first plan moves nothing.
    const late = { workerEpoch, planId: 'p1', leases: [{ leaseId, targetServerId: 's2' }] };
    const command = workerCommandSubject(system.bench.pool, workerId, 'move');
    expect(await system.bench.client.messaging.request(command, late)).toEqual({ stopped: 0 });
    await move('p3', 's2');
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await system.uncut(LONG));
    expect(headers).toMatchObject({ 'x-broomwagon-server': 's2', 'x-broomwagon-attempts': '4' });
  });

  it('when the weights change, with both versions', async () => {
    const { reply } = await system.stalled();
    const sync = { syncId: 'w1', version: 1, mode: 'abort' as const, waitMs: 20_000 };
    const { running } = await system.bench.client.call(system.bench.pool, 'weights.begin', sync, { timeoutMs: 30_000 });
    expect(running).toBe(0);
    await system.bench.client.call(system.bench.pool, 'server.update', { serverId: 's1', weightVersion: 1 });
    await system.bench.client.call(system.bench.pool, 'weights.commit', { syncId: 'w1' });
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await system.uncut(LONG));
    const [before, after] = body.meta_info.weight_versions;
    expect([before.version, before.start, after.version, after.end]).toEqual(['0', 0, '1', LONG]);
    expect(before.end).toBe(after.start);
    expect(headers['x-broomwagon-weight-versions']).toBe(`0:0-${before.end},1:${before.end}-${LONG}`);
  });

  it('when its server is removed', async () => {
    const { reply } = await system.stalled();
    await system.registerSecond();
    await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
    const { status, headers, body } = await reply;
    expectSame({ status, headers, body }, await system.uncut(LONG));
    expect(headers['x-broomwagon-server']).toBe('s2');
    await system.isIdle(system.bench.engine.url);
  });

  it('not when that would change its tokens: it begins again, or ends with the error once tokens were sent', async () => {
    const sampling_params = { max_new_tokens: 30, sampling_seed: 7, regex: 'a*' };
    await inject(system.bench.engine.url, { kind: 'close-mid-stream', afterTokens: 7, count: 2 });
    const whole = await system.gateway.post('/generate', generate(30, { sampling_params }));
    expectSame(whole, await system.uncut(30));
    await inject(system.bench.engine.url, { kind: 'close-mid-stream', afterTokens: 7 });
    const cut = await system.gateway.post('/generate', generate(30, { sampling_params, stream: true }));
    expect(parseEvents(cut.body).at(-2)).toMatchObject({ error: { type: 'ENGINE_ERROR', retryable: true } });
  });

  it('not for ever, if it begins again and its calls fail after some tokens each', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool, {
      maxEngineFailures: 2,
      engineFailureDeadlineMs: 0,
    });
    for (const afterTokens of [1, 2, 3, 4])
      await inject(system.bench.engine.url, { kind: 'error-in-stream', afterTokens });
    const sampling_params = { max_new_tokens: 30, regex: 'a*' };
    const { status, body } = await other.post('/generate', generate(30, { sampling_params }));
    expect([status, body.error?.type]).toEqual([502, 'ENGINE_ERROR']);
    await other.close();
  });
});

describe('the replica', () => {
  it('is an SGLang server to a probe', async () => {
    const { adapter, model, capabilities } = await detectEngine(system.gateway.url);
    expect([adapter.dialect, model, capabilities.tokenIdsOut]).toEqual(['sglang', 'simulated', true]);
    const prompt = { promptTokenIds: PROMPT };
    const { tokenIds } = await adapter.generate({ engineRequestId: 'x', prompt, maxTokens: 8, sampling: { seed: 7 } });
    expect(tokenIds).toEqual((await system.uncut(8)).body.output_ids);
    expect((await system.gateway.get('/health_generate')).status).toBe(200);
    await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
    const unready = await system.gateway.get('/health_generate');
    expect([unready.status, unready.headers['retry-after']]).toEqual([503, '1']);
    expect((await system.gateway.get('/readyz')).status).toBe(200);
  });

  it('ends running responses with a retryable error when it is shut down', async () => {
    const reply = system.gateway.post('/generate', generate(8_000));
    await system.hasTokens();
    await system.gateway.close();
    const { status, body } = await reply;
    expect([status, body.error.type, body.error.retryable]).toEqual([503, 'SHUTTING_DOWN', true]);
    await system.isIdle(system.bench.engine.url);
    expect(await system.leases()).toEqual({ leases: 0, waiters: 0 });
  });

  it.each([
    ['the same body is continued', {}, 6],
    ['another body begins again', { more: 1 }, 0],
  ])('saves a running response for its repeat to another replica: %s', async (_, more, restored) => {
    const { reply } = await system.stalled({ rid: 'mine' });
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    await system.gateway.close();
    expect((await reply).status).toBe(503);
    await system.registerSecond();
    await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
    expectSame(await other.post('/generate', generate(LONG, { rid: 'mine', ...more })), await system.uncut(LONG));
    expect(await other.metric('gateway_restored_tokens_total')).toBe(restored);
    expect((await fetchState(system.second.url)).resumeMismatches).toBe(0);
    await other.close();
  });
});
