import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { VllmAdapter } from './vllm.adapter';

const SCALE_OUT = '/inference/v1/abort_requests';
const DEVELOPMENT = '/abort_requests';

let routes: string[] = [];
let disabled: string[] = [];
let called: string[] = [];
let bodies: unknown[] = [];
const server = createServer((request, response) => {
  const { url = '' } = request;
  called.push(url);
  request.on('data', (bytes: Buffer) => bodies.push(JSON.parse(bytes.toString()) as unknown));
  request.on('end', () => response.writeHead(disabled.includes(url) ? 403 : routes.includes(url) ? 200 : 404).end());
});
afterEach(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

async function start(...present: string[]): Promise<VllmAdapter> {
  [routes, disabled, called, bodies] = [present, [], [], []];
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
