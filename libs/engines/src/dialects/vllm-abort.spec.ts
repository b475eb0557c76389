import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { VllmAdapter } from './vllm.adapter';

const SCALE_OUT = '/inference/v1/abort_requests';
const DEVELOPMENT = '/abort_requests';

let routes: string[] = [];
let disabled: string[] = [];
let failing: string[] = [];
let called: string[] = [];
let bodies: unknown[] = [];
const server = createServer((request, response) => {
  const { url = '' } = request;
  called.push(url);
  const pieces: Buffer[] = [];
  request.on('data', (bytes: Buffer) => pieces.push(bytes));
  request.on('end', () => {
    if (pieces.length > 0) bodies.push(JSON.parse(Buffer.concat(pieces).toString()));
    const status = failing.includes(url) ? 500 : disabled.includes(url) ? 403 : routes.includes(url) ? 200 : 404;
    response.writeHead(status).end();
  });
});
afterEach(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

async function start(...present: string[]): Promise<VllmAdapter> {
  [routes, disabled, failing, called, bodies] = [present, [], [], [], []];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new VllmAdapter(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

it.each([
  ['both routes', [SCALE_OUT, DEVELOPMENT], [SCALE_OUT, SCALE_OUT], true],
  ['the route of --enable-scale-out', [SCALE_OUT], [SCALE_OUT, SCALE_OUT], true],
  ['the route of the development mode', [DEVELOPMENT], [SCALE_OUT, DEVELOPMENT, DEVELOPMENT], true],
  ['no route', [], [SCALE_OUT, DEVELOPMENT], false],
])('an engine with %s is asked once for a route that it lacks', async (_, present, expected, answer) => {
  const adapter = await start(...present);
  expect([await adapter.abort('one'), await adapter.abort('two')]).toEqual([answer, answer]);
  expect(called).toEqual(expected);
  const names = ['cmpl-one-0', 'chatcmpl-one', 'generate-tokens-one', 'one'];
  expect(bodies[0]).toEqual({ request_ids: names });
});

it('an engine whose route of --enable-scale-out is disabled is asked by the route of the development mode', async () => {
  const adapter = await start(DEVELOPMENT);
  disabled = [SCALE_OUT];
  expect([await adapter.abort('one'), await adapter.abort('two')]).toEqual([true, true]);
  expect(called).toEqual([SCALE_OUT, DEVELOPMENT, DEVELOPMENT]);
});

it('aborts of one turn of the event loop are one call for 256 requests, and each gets the answer', async () => {
  const adapter = await start(SCALE_OUT);
  const ids = Array.from({ length: 300 }, (_, index) => `request-${index}`);
  expect(new Set(await Promise.all(ids.map((id) => adapter.abort(id))))).toEqual(new Set([true]));
  expect(called).toEqual([SCALE_OUT, SCALE_OUT]);
  const names = (bodies as { request_ids: string[] }[]).map((body) => body.request_ids);
  expect(names.map(({ length }) => length)).toEqual([4 * 256, 4 * 44]);
  expect(names.flat()).toEqual(expect.arrayContaining(ids));
});

it('each abort of a call that fails is rejected, and the next call is sent', async () => {
  const adapter = await start(SCALE_OUT);
  failing = [SCALE_OUT];
  const ended = await Promise.allSettled(['one', 'two'].map((id) => adapter.abort(id)));
  expect(ended).toEqual([
    { status: 'rejected', reason: expect.objectContaining({ code: 'ENGINE_ERROR' }) as unknown },
    { status: 'rejected', reason: expect.objectContaining({ code: 'ENGINE_ERROR' }) as unknown },
  ]);
  failing = [];
  expect(await adapter.abort('one')).toBe(true);
  expect(called).toEqual([SCALE_OUT, SCALE_OUT]);
});
