import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { FaultyLink } from './faulty-link';

const LINES = 400;

/** Blocks the event loop, as a busy machine does. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

it('a link whose delay begins and ends again and again passes all bytes on in their order', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const link = await FaultyLink.start((server.address() as AddressInfo).port);
  const client = connect({ port: link.port, host: '127.0.0.1', noDelay: true });
  const [socket] = await accepted;
  const received = text(socket);
  let sent = '';
  for (let line = 0; line < LINES; line++) {
    if (line % 3 === 0) link.begin({ kind: 'delay', direction: 'out', delayMs: 1 + (line % 4) });
    else if (line % 3 === 1) link.end();
    sent += `${line}\n`;
    client.write(`${line}\n`, () => line % 5 === 0 && block(2));
    await new Promise(setImmediate);
  }
  client.end();
  expect(await received).toBe(sent);
  await link.stop();
  server.close();
});
