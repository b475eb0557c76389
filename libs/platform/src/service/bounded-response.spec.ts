import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { drained, writePart } from './bounded-response';

/** More than the buffers of a connection hold. */
const MUCH = 'x'.repeat(64 * 1_024 * 1_024);
const PARTS = 64;
const PART = Buffer.alloc(1_000_000);
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

/** Writes parts while the caller reads. Returns the number of parts that the caller has taken. */
async function writeParts(onWritten: () => void): Promise<number> {
  for (let written = 0; written < PARTS; written += 1) {
    if (!(await writePart(response, PART))) return written;
    onWritten();
  }
  return PARTS;
}

it('writes parts no faster than the caller reads', async () => {
  let written = 0;
  const writing = writeParts(() => (written += 1));
  await expect.poll(() => response.writableNeedDrain).toBe(true);
  expect(written).toBeLessThan(PARTS);
  let bytes = 0;
  incoming.on('data', (part: Buffer) => (bytes += part.length));
  expect(await writing).toBe(PARTS);
  expect(response.listenerCount('drain')).toBe(0);
  response.end();
  await once(incoming, 'end');
  expect(bytes).toBe(MUCH.length + PARTS * PART.length);
});

it('writes no further part when the caller goes away', async () => {
  const writing = writeParts(() => undefined);
  await expect.poll(() => response.writableNeedDrain).toBe(true);
  incoming.destroy();
  expect(await writing).toBeLessThan(PARTS);
});
