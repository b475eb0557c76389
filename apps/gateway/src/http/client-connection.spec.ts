import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cutIfStalled, whenClosed } from './client-connection';

const STALLED_MS = 100;
const PART = Buffer.alloc(64_000_000);

let response: ServerResponse;
let isDelivered: boolean | undefined;
const server = createServer((_, to) => {
  cutIfStalled(to, STALLED_MS);
  whenClosed(to, (all) => (isDelivered = all));
  isDelivered = undefined;
  response = to;
});
beforeEach(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

async function ask(): Promise<{ answer: Promise<IncomingMessage> }> {
  const begun = once(server, 'request');
  const answer = new Promise<IncomingMessage>((resolve) => {
    get({ port: (server.address() as AddressInfo).port, agent: false }, resolve);
  });
  await begun;
  return { answer };
}

it('disconnects a client that does not read its response, also after a silence', async () => {
  const { answer } = await ask();
  await once(response, 'timeout');
  expect(response.destroyed).toBe(false);
  response.end(PART);
  (await answer).on('error', () => undefined);
  await once(response, 'close');
  expect([(await answer).complete, isDelivered]).toEqual([false, false]);
});

it('waits for a response that is not written', async () => {
  const { answer } = await ask();
  await once(response, 'timeout');
  response.end('late');
  let text = '';
  for await (const part of (await answer).setEncoding('utf8') as AsyncIterable<string>) text += part;
  expect(text).toBe('late');
  await expect.poll(() => isDelivered).toBe(true);
});
