import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { EngineHttp } from './engine-http';

/** More than the buffers of a connection hold. */
const PIECES = 400;
const PIECE = 'x'.repeat(65_536);
const STREAM = { 'content-type': 'text/event-stream' };
let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function engine(answer: RequestListener): Promise<EngineHttp> {
  server = createServer((request, response) => answer(request.resume(), response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new EngineHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

it('is not read before it is resumed, and then loses nothing', async () => {
  let isHeldUp = false;
  const http = await engine((_, response) => {
    response.writeHead(200, STREAM);
    let left = PIECES;
    const write = (): void => {
      while (left > 0 && response.write(PIECE)) left -= 1;
      if (left > 0) {
        isHeldUp = true;
        left -= 1;
        response.once('drain', write);
      } else response.end();
    };
    write();
  });
  let bytes = 0;
  let isPaused = true;
  const stream = http.stream((chunk) => {
    bytes += chunk.length;
    return !isPaused;
  });
  const received = http.receive(stream, '/generate', {}, {});
  await expect.poll(() => isHeldUp && bytes > 0).toBe(true);
  expect(bytes).toBeLessThanOrEqual(PIECE.length);
  isPaused = false;
  stream.resume();
  await received;
  expect(bytes).toBe(PIECES * PIECE.length);
});

it.each([
  ['its length', { 'content-length': 2 }],
  ['its connection', { connection: 'close' }],
  ['its connection, which a list says', { connection: 'Keep-Alive, close' }],
  ['its connection, which the second of two headers says', { connection: ['keep-alive', 'close'] }],
])('is read all the time if it ends with %s', async (_, headers) => {
  const http = await engine((__, response) => void response.writeHead(200, { ...STREAM, ...headers }).end('ab'));
  let text = '';
  const stream = http.stream((chunk) => (text += chunk.toString()) === '');
  await http.receive(stream, '/generate', {}, {});
  expect(text).toBe('ab');
});

it('ends at once when it is aborted while it is not read', async () => {
  const http = await engine((_, response) => void response.writeHead(200, STREAM).write('data: a\n\n'));
  const closed = new Promise<void>((resolve) => server.on('connection', (socket) => socket.on('close', resolve)));
  const stream = http.stream(() => {
    setImmediate(() => stream.abort(new Error('enough')));
    return false;
  });
  await expect(http.receive(stream, '/generate', {}, {})).rejects.toThrow('enough');
  await closed;
});

it.each([
  ['is compressed', { ...STREAM, 'content-encoding': 'gzip' }, 'content encoding gzip'],
  ['is one JSON object', { 'content-type': 'application/json' }, 'not a stream'],
])('refuses an answer that %s, without waiting for its end', async (_, headers, message) => {
  let accepted: unknown;
  const http = await engine((request, response) => {
    accepted = request.headers['accept-encoding'];
    response.writeHead(200, headers).write('{"choices":[]}'.padEnd(65_536));
  });
  const received = http.receive(
    http.stream(() => true),
    '/generate',
    {},
    {},
  );
  await expect(received).rejects.toMatchObject({ code: 'ENGINE_PROTOCOL', message: expect.stringContaining(message) });
  expect(accepted).toBe('identity');
});
