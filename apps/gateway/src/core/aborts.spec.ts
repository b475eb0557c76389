import { type IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, inject as given, it, vi } from 'vitest';
import { inject, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { createRandom } from '../../../../test/system/chaos';
import { parseEvents, Gateway, open, post, type Reply } from '../../../../test/system/gateway';
import { expectSame, generate, LONG, PROMPT, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(20);

describe('an abort', () => {
  it.each([
    ['by id', { rid: 'r-1' }],
    ['by a prefix', { rid: 'r-', prefix: true }],
    ['of all', { abort_all: true }],
  ])('%s ends the response through any replica, with its tokens', async (_, body) => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    const reply = system.gateway.post('/generate', generate(8_000, { rid: 'r-1' }));
    await system.hasTokens();
    expect((await other.post('/abort_request', body)).status).toBe(200);
    const { status, body: aborted } = await reply;
    expect(status).toBe(200);
    expect(aborted.meta_info.finish_reason).toMatchObject({ type: 'abort' });
    const whole = await system.uncut(aborted.output_ids.length);
    expect(aborted.output_ids).toEqual(whole.body.output_ids);
    await system.isIdle(system.bench.engine.url);
    await expect.poll(async () => (await other.get('/v1/loads?include=core')).body.loads[0].num_total_reqs).toBe(0);
    // The id may be used again at once.
    const again = async () => (await other.post('/generate', generate(3, { rid: 'r-1' }))).body.output_ids;
    await expect.poll(again).toHaveLength(3);
    await other.close();
  });

  it('of an id that several replicas have ends all of its responses, and no later one', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    const replicas = [system.gateway, other];
    const named = { 'x-request-id': 'r-1' };
    const replies = replicas.map((one) => one.post('/generate', generate(8_000), named));
    for (const one of replicas) await expect.poll(() => one.metric('tokens_generated_total')).toBeGreaterThan(0);
    await system.gateway.post('/abort_request', { rid: 'r-1' });
    for (const { body } of await Promise.all(replies)) expect(body.meta_info.finish_reason.type).toBe('abort');
    for (const one of replicas) {
      const later = await one.post('/generate', generate(3), named);
      expect(later.body.meta_info.finish_reason.type).toBe('length');
    }
    await other.close();
  });

  it('that arrives before its request is remembered by every replica', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    await other.post('/abort_request', { rid: 'early' });
    const early = await other.post('/generate', generate(3, { rid: 'early' }));
    expect([early.body.meta_info.finish_reason.type, early.body.output_ids]).toEqual(['abort', []]);
    const fetchFinishType = async (replica: Gateway) =>
      (await replica.post('/generate', generate(3, { rid: 'early' }))).body.meta_info.finish_reason.type;
    // An abort ends one response: after a while the other replica forgets the abort too.
    await expect.poll(() => fetchFinishType(system.gateway)).toBe('length');
    await expect
      .poll(async () => {
        await other.post('/abort_request', { rid: 'early' });
        return fetchFinishType(system.gateway);
      })
      .toBe('abort');
    await other.close();
  });

  it('by a prefix ends running responses, and no later one', async () => {
    await system.gateway.post('/abort_request', { rid: 'early', prefix: true });
    const later = await system.gateway.post('/generate', generate(3, { rid: 'early-1' }));
    expect(later.body.meta_info.finish_reason.type).toBe('length');
  });

  it('by the id of a batch ends all its choices, also before they begin', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    type Choice = { meta_info: { finish_reason: { type: string } } };
    const listFinishTypes = (reply: Reply): string[] =>
      reply.body.map((choice: Choice) => choice.meta_info.finish_reason.type);
    const sampling_params = { max_new_tokens: 8_000, n: 2 };
    const reply = system.gateway.post('/generate', generate(1, { rid: 'b', sampling_params }));
    await system.hasTokens();
    await other.post('/abort_request', { rid: 'b' });
    expect(listFinishTypes(await reply)).toEqual(['abort', 'abort']);
    await other.post('/abort_request', { rid: 'early' });
    expect(listFinishTypes(await other.post('/generate', generate(1, { rid: 'early', sampling_params })))).toEqual([
      'abort',
      'abort',
    ]);
    await other.post('/abort_request', { rid: 'one-1' });
    const one = generate(3, { rid: 'one', input_ids: [PROMPT, [5]] });
    expect(listFinishTypes(await other.post('/generate', one))).toEqual(['length', 'abort']);
    await other.close();
  });

  it.each([
    ['passed on', {}, 'abort'],
    ['continued if the client asks for it', { 'x-broomwagon-on-engine-abort': 'resume' }, 'length'],
  ])('that was made on the engine is %s', async (_, headers: Record<string, string>, type) => {
    const reply = system.gateway.post('/generate', generate(type === 'length' ? LONG : 8_000), headers);
    await system.hasTokens();
    await post(`${system.bench.engine.url}/abort_request`, { abort_all: true });
    const { body } = await reply;
    expect(body.meta_info.finish_reason.type).toBe(type);
    expect(body.output_ids).toEqual((await system.uncut(body.output_ids.length)).body.output_ids);
  });
});

describe('a stream of an engine that ends with [DONE] and without a reason', () => {
  it('counts as an abort on the engine: its tokens are passed on', async () => {
    await inject(system.bench.engine.url, { kind: 'done-mid-stream', afterTokens: 7 });
    const { status, body, headers } = await system.gateway.post('/generate', generate(30));
    expect([status, body.meta_info.finish_reason.type, headers['x-broomwagon-attempts']]).toEqual([200, 'abort', '1']);
    expect(body.output_ids).toEqual((await system.uncut(7)).body.output_ids);
  });
});

describe('a client that disconnects', () => {
  it.each([
    ['before tokens, in a queue', { stream: false }, 0],
    ['while it waits for the answer', { stream: false }, 64],
    ['in the middle of a stream', { stream: true }, 64],
  ])('%s frees engine and lease at once', async (_, more, maxInflight) => {
    if (maxInflight === 0) await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
    const sent = open(`${system.gateway.url}/generate`, generate(8_000, more));
    if (maxInflight > 0) await system.hasTokens();
    else await expect.poll(() => system.metric('gateway_generations_running')).toBe(1);
    sent.destroy();
    await system.isIdle(system.bench.engine.url);
    await expect.poll(system.leases).toEqual({ leases: 0, waiters: 0 });
    await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
  });

  it('in the middle of its body leaves nothing', async () => {
    const sent = open(`${system.gateway.url}/generate`, '{"input_ids":', { 'content-length': '100' });
    await new Promise<void>((resolve) => sent.once('socket', (socket) => socket.once('connect', () => resolve())));
    sent.destroy();
    expect((await system.gateway.get('/health')).status).toBe(200);
    expect(await system.leases()).toEqual({ leases: 0, waiters: 0 });
  });

  it('at any byte of request or response leaves nothing', async () => {
    const random = createRandom(given('seed'));
    const cuts = Array.from({ length: 40 * given('runsFactor') }, (_, index) => {
      const body = JSON.stringify(generate(40, { stream: index % 2 === 0 }));
      const head = `POST /generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${body.length}`;
      const message = `${head}\r\n\r\n${body}`;
      const isWhole = random() < 0.6;
      const sent = isWhole ? message : message.slice(0, Math.floor(random() * message.length));
      return cutAfter(sent, isWhole ? Math.floor(random() * 5_000) : 0);
    });
    await Promise.all(cuts);
    await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
    await expect.poll(system.leases).toEqual({ leases: 0, waiters: 0 });
    await system.isIdle(system.bench.engine.url);
    expect(await system.metric('gateway_generations_unread')).toBe(0);
  });

  it.each([false, true])('and repeats its own id joins the generation; streamed: %s', async (stream) => {
    const body = generate(LONG, { rid: 'mine', stream });
    const sent = open(`${system.gateway.url}/generate`, body);
    await system.hasTokens();
    sent.destroy();
    const other = await system.gateway.post('/generate', generate(LONG + 1, { rid: 'mine' }));
    expect([other.status, other.body.error.type]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const again = system.gateway.post('/generate', body);
    await expect.poll(() => system.metric('gateway_joined_total')).toBe(1);
    const reply = await again;
    const last = stream ? (parseEvents(reply.body).at(-2) as Reply['body']) : reply.body;
    expectSame({ ...reply, body: last }, await system.uncut(LONG));
    expect((await fetchState(system.bench.engine.url)).requests.received).toBe(1);
  });

  it('and does not come back ends its generation after rejoinMs', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool, { rejoinMs: 100 });
    const sent = open(`${other.url}/generate`, generate(8_000, { rid: 'mine' }));
    await system.hasTokens();
    sent.destroy();
    await system.isIdle(system.bench.engine.url);
    await expect.poll(system.leases).toEqual({ leases: 0, waiters: 0 });
    await other.close();
  });
});

/** Sends a part of a request, and disconnects after a number of bytes of the response, or at its end. */
function cutAfter(message: string, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(system.gateway.url).port), '127.0.0.1');
    let left = bytes;
    socket.on('error', () => undefined).on('close', () => resolve());
    socket.on('data', (part) => {
      left -= part.length;
      if (left <= 0) socket.destroy();
    });
    socket.write(message, () => bytes === 0 && socket.destroy());
  });
}

it('a client that does not read its stream gets few long chunks: the gateway keeps no more than one of them', async () => {
  await system.registerSecond();
  await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
  const writes = vi.spyOn(ServerResponse.prototype, 'write');
  const reading = new Promise<IncomingMessage>((resolve) => {
    open(`${system.gateway.url}/generate`, generate(2_000, { stream: true }), {}, (response) => {
      response.pause();
      resolve(response);
    });
  });
  const response = await reading;
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
  const kept = writes.mock.contexts.map((one) => (one as ServerResponse).writableLength);
  writes.mockRestore();
  expect(Math.max(...kept)).toBeLessThan(500_000);
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part as string;
  const last = parseEvents(text).at(-2) as Reply['body'];
  expect([last.output_ids.length, last.meta_info.finish_reason.type, text.endsWith('[DONE]\n\n')]).toEqual([
    2_000,
    'length',
    true,
  ]);
});

it('a client that reads nothing is cut off and frees its lease; clients beside it get everything before that', async () => {
  // More than the buffers of both connections take, so that it is still running when the client is cut off.
  await system.startSecond({ lengths: { name: 'endless', getLength: () => 100_000 } });
  await system.registerSecond();
  await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });
  const setTimeout = ServerResponse.prototype.setTimeout;
  const limits: number[] = [];
  let isCut = () => false;
  const shorter = vi.spyOn(ServerResponse.prototype, 'setTimeout').mockImplementation(function (
    this: ServerResponse,
    ms,
    listener,
  ) {
    limits.push(ms);
    return setTimeout.call(this, 1_000, () => isCut() && listener?.());
  });
  let others = 0;
  isCut = () => others === OTHERS;
  const OTHERS = 8;
  const stalled = new Promise<IncomingMessage>((resolve) => {
    open(`${system.gateway.url}/generate`, generate(100_000, { stream: true }), {}, (response) => {
      response.pause();
      resolve(response);
    });
  });
  const response = await stalled;
  const ended = new Promise<void>((resolve) => response.once('error', () => resolve()));
  const whole = await system.uncut(60);
  await Promise.all(
    Array.from({ length: OTHERS }, async () => {
      expectSame(await system.gateway.post('/generate', generate(60)), whole);
      others += 1;
    }),
  );
  await expect.poll(() => system.metric('gateway_generations_running')).toBe(0);
  await expect.poll(() => system.leases()).toEqual({ leases: 0, waiters: 0 });
  const { body } = await system.gateway.get('/metrics');
  expect(body).toMatch(/^broomwagon_gateway_generations_total{.*outcome="abort".*} 1$/m);
  expect(new Set(limits)).toEqual(new Set([300_000]));
  response.resume();
  await ended;
  shorter.mockRestore();
});
