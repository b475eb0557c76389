import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writePart } from './write-part';

const PARTS = 64;
const PART = Buffer.alloc(1_000_000);

let written: number;
let isWhole: boolean | undefined;
let response: ServerResponse;
const server = createServer((_, to) => {
  response = to;
  void (async () => {
    let isOpen = true;
    for (; isOpen && written < PARTS; written += 1) isOpen = await writePart(to, PART);
    isWhole = isOpen;
    to.end();
  })();
});
beforeEach(async () => {
  written = 0;
  isWhole = undefined;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

/** Sends a request whose response is not read. */
const ask = () =>
  new Promise<IncomingMessage>((resolve) => {
    get({ port: (server.address() as AddressInfo).port, agent: false }, resolve);
  });

it('writes no faster than the client reads', async () => {
  const answer = await ask();
  await expect.poll(() => response.writableNeedDrain).toBe(true);
  expect(written).toBeLessThan(PARTS);
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) bytes += part.length;
  expect([bytes, isWhole]).toEqual([PARTS * PART.length, true]);
  expect(response.listenerCount('drain')).toBe(0);
});

it('ends when a client that does not read disconnects', async () => {
  const answer = await ask();
  await expect.poll(() => response.writableNeedDrain).toBe(true);
  answer.destroy();
  await expect.poll(() => isWhole).toBe(false);
  expect(written).toBeLessThan(PARTS);
});
