import { describe, expect, it } from 'vitest';
import { inject, stateOf } from '../lab/engine-simulator/src/test-engine';
import { eventsOf, Gateway, open, post, type Reply } from './system/gateway';
import { expectSame, generate, LONG, useGateway } from './system/gateway-bench';

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

  it('that arrives before its request is remembered by every replica', async () => {
    const other = await Gateway.start(system.bench.prefix, system.bench.pool);
    await other.post('/abort_request', { rid: 'early' });
    const early = await other.post('/generate', generate(3, { rid: 'early' }));
    expect([early.body.meta_info.finish_reason.type, early.body.output_ids]).toEqual(['abort', []]);
    const typeOf = async (replica: Gateway) =>
      (await replica.post('/generate', generate(3, { rid: 'early' }))).body.meta_info.finish_reason.type;
    // An abort ends one generation: in time it is forgotten by the other replica too.
    await expect.poll(() => typeOf(system.gateway)).toBe('length');
    await expect
      .poll(async () => {
        await other.post('/abort_request', { rid: 'early' });
        return typeOf(system.gateway);
      })
      .toBe('abort');
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
  it('is an abort on the engine: its tokens are passed on', async () => {
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
    const last = stream ? (eventsOf(reply.body).at(-2) as Reply['body']) : reply.body;
    expectSame({ ...reply, body: last }, await system.uncut(LONG));
    expect((await stateOf(system.bench.engine.url)).requests.received).toBe(1);
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
