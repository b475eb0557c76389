import { createServer, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway, type Reply } from '../../../../test/system/gateway';
import { expectSame, generate, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(12);
/** Answer of an engine to each generation; other calls, or all, are forwarded to the second engine. */
let refuse: ((response: ServerResponse) => void) | undefined;
let refused = 0;
let server: Server;
let gateway: Gateway | undefined;
let endpoint: string;

beforeEach(async () => {
  refused = 0;
  server = createServer((incoming, response) => {
    if (refuse !== undefined && incoming.method === 'POST' && incoming.url === '/generate') {
      incoming.resume();
      refused += 1;
      return refuse(response);
    }
    const { method, headers, url } = incoming;
    const onward = request(`${system.second.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await system.registerSecond({ endpoint });
});
afterEach(async () => {
  await gateway?.close();
  server.closeAllConnections();
  server.close();
});

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end('refused');
const start = async (settings: object = {}): Promise<Gateway> =>
  (gateway = await Gateway.start(system.bench.prefix, system.bench.pool, settings));
const onlyRefusing = () => system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's1' });

it.each([429, 503])('continues on another server when one answers %i, which then gets no calls', async (status) => {
  refuse = answer(status, { 'retry-after': '250' });
  const started = await start();
  const replies = await Promise.all(Array.from({ length: 6 }, () => started.post('/generate', generate(4))));
  for (const reply of replies) expectSame(reply, await system.uncut(4));
  const seen = refused;
  for (let n = 0; n < 4; n++) expect((await started.post('/generate', generate(4))).status).toBe(200);
  expect(refused).toBe(seen);
});

it('waits while every engine is busy, and then answers 503 with the Retry-After of the engine', async () => {
  refuse = answer(429, { 'retry-after': '7' });
  await onlyRefusing();
  const started = await start({ noServerDeadlineMs: 300 });
  const { status, body, headers } = await started.post('/generate', generate(4));
  expect([status, body.error.type, headers['retry-after'], refused]).toEqual([503, 'ENGINE_BUSY', '7', 1]);
});

it('serves a response that waited for a busy engine', async () => {
  refuse = answer(503);
  await onlyRefusing();
  const started = await start();
  const reply = started.post('/generate', generate(4));
  await expect.poll(() => refused).toBeGreaterThan(0);
  await system.bench.client.call(system.bench.pool, 'server.uncordon', { serverId: 's1' });
  expectSame(await reply, await system.uncut(4));
});

it('waits for the busy engine when the other one has answered in a wrong dialect', async () => {
  refuse = answer(200, { 'content-type': 'application/json' });
  await selectZoo(system.bench.engine.url, { entries: ['full-429'], count: 1 });
  const started = await start();
  expectSame(await started.post('/generate', generate(4)), await system.uncut(4));
  expect(refused).toBe(1);
});

describe('when one engine has answered in a wrong dialect, and the other one has failed', () => {
  const restart = { instanceId: 'next' };
  let replied: Promise<Reply>;
  let isOver: boolean;

  /** Number of acquires that found no server. */
  const refusals = () => system.bench.metric('acquires_total{outcome="NO_SERVER_AVAILABLE"');

  beforeEach(async () => {
    refuse = answer(200, { 'content-type': 'application/json' });
    const { client, pool } = system.bench;
    const { epoch } = await client.call(pool, 'server.get', { serverId: 's1' });
    await client.call(pool, 'server.fence', { serverId: 's1', epoch });
    const started = await start({ acquireWaitMs: 20 });
    const before = await refusals();
    isOver = false;
    replied = started.post('/generate', generate(4)).finally(() => (isOver = true));
    await expect.poll(async () => isOver || (await refusals()) > before + 2).toBe(true);
    expect(refused).toBe(1);
  });

  it('waits for the other one', async () => {
    await system.registerFirst(restart);
    expectSame(await replied, await system.uncut(4));
    expect(refused).toBe(1);
  });

  it('continues on a new start of the first one', async () => {
    refuse = undefined;
    await system.registerSecond({ endpoint, ...restart });
    expectSame(await replied, await system.uncut(4));
  });

  it('ends when the other one is removed', async () => {
    await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
    const { status, body } = await replied;
    expect([status, body.error.type, refused]).toEqual([502, 'ENGINE_PROTOCOL', 1]);
  });
});

it('does not wait when the only engine of the pool has answered in a wrong dialect', async () => {
  refuse = answer(200, { 'content-type': 'application/json' });
  await system.bench.client.call(system.bench.pool, 'server.remove', { serverId: 's1' });
  const parked = () => system.bench.metric('acquires_total{outcome="parked"');
  const before = await parked();
  const { status, body } = await (await start()).post('/generate', generate(4));
  expect([status, body.error.type, refused, (await parked()) - before]).toEqual([502, 'ENGINE_PROTOCOL', 1, 0]);
});

it.each([
  [400, 400, 'ENGINE_REJECTED', 1],
  [422, 422, 'ENGINE_REJECTED', 1],
  [500, 502, 'ENGINE_ERROR', 5],
])('answers %i of an engine with %i, after few calls', async (status, expected, type, most) => {
  refuse = answer(status);
  await onlyRefusing();
  const started = await start({ engineFailureDeadlineMs: 300 });
  const reply = await started.post('/generate', generate(4));
  expect([reply.status, reply.body.error.type]).toEqual([expected, type]);
  expect(refused).toBeLessThanOrEqual(most);
});
