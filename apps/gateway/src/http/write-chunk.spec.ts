import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeChunk } from './write-chunk';

const PIECES = ['', 'plain', '', 'é 漢字 🙂', 'x'.repeat(100_000), '', 'y', '', '漢'.repeat(3_000), 'end of pieces'];

const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  const pieces = [...PIECES];
  let hasWritten = false;
  // The first five pieces are written before the first one is sent, the others one by one, with and without waiting
  // bytes.
  for (const piece of pieces.splice(0, 5)) hasWritten = writeChunk(response, piece, hasWritten);
  const next = (): void => {
    const piece = pieces.shift();
    if (piece === undefined) return void response.end('end');
    hasWritten = writeChunk(response, piece, hasWritten);
    setImmediate(next);
  };
  setImmediate(next);
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

const port = (): number => (server.address() as AddressInfo).port;

it('writes chunks that any client reads, in ASCII and not', async () => {
  const answer = await fetch(`http://127.0.0.1:${port()}`);
  expect(answer.headers.get('transfer-encoding')).toBe('chunked');
  expect(await answer.text()).toBe(`${PIECES.join('')}end`);
});

it('writes the text alone to clients of HTTP/1.0', async () => {
  const socket = connect(port(), '127.0.0.1');
  socket.write('GET / HTTP/1.0\r\n\r\n');
  const answer = await text(socket);
  expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(`${PIECES.join('')}end`);
});
