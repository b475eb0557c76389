import { createServer, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { Gateway } from '../../../../test/system/gateway';
import { expectSame, generate, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(8);
/** An engine that refuses each generation with this answer; other routes are forwarded to the second engine. */
let refuse: (response: ServerResponse) => void;
let refused = 0;
let server: Server;
let gateway: Gateway | undefined;

beforeEach(async () => {
  refused = 0;
  server = createServer((incoming, response) => {
    if (incoming.method === 'POST' && incoming.url === '/generate') {
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
  await system.registerSecond({ endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
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
