import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { drained } from './drained';

/** More than the buffers of a connection hold. */
const MUCH = 'x'.repeat(64 * 1_024 * 1_024);
const server = createServer();
let response: ServerResponse;
let incoming: IncomingMessage;

beforeEach(async () => {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const requested = once(server, 'request');
  const replied = once(get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }), 'response');
  [, response] = (await requested) as [IncomingMessage, ServerResponse];
  response.flushHeaders();
  [incoming] = (await replied) as [IncomingMessage];
  incoming.on('error', () => undefined);
  expect(response.write(MUCH)).toBe(false);
});
afterEach(() => {
  server.closeAllConnections();
  return new Promise((closed) => server.close(closed));
});

it('resolves when the caller has read', async () => {
  incoming.resume();
  await drained(response);
  expect(response.destroyed).toBe(false);
});

it('resolves when the caller goes away', async () => {
  const waiting = drained(response);
  incoming.destroy();
  await waiting;
  expect(response.destroyed).toBe(true);
});

it('cuts a caller off that reads nothing', async () => {
  await drained(response, 1);
  expect(response.destroyed).toBe(true);
});
