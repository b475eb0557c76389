import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { answerParent } from '../child';

/** The simplest proxy with undici: passes bytes in both directions without parsing them. */
const dispatcher = new Agent({ connections: 8_192, headersTimeout: 0, bodyTimeout: 0 });

async function pass(engine: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const ended = new AbortController();
  outgoing.once('close', () => ended.abort());
  const answer = await request(engine + incoming.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: incoming,
    signal: ended.signal,
    dispatcher,
  });
  outgoing.writeHead(answer.statusCode, { 'content-type': answer.headers['content-type'] });
  answer.body.on('error', () => outgoing.destroy());
  answer.body.pipe(outgoing);
}

answerParent<{ engine: string }, { port: number }>(async ({ engine }) => {
  const server = createServer({ keepAliveTimeout: 600_000 }, (incoming, outgoing) => {
    pass(engine, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 8_192, resolve));
  return { port: (server.address() as AddressInfo).port };
});
