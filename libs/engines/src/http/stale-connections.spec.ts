import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { EngineHttp } from './engine-http';
import type { EngineStream } from './engine-stream';

let server: Server;
let asked = 0;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Answers the first calls of each connection and breaks it at the next one. */
async function start(callsOfConnection: number, end: (socket: Socket) => void): Promise<EngineHttp> {
  const calls = new Map<Socket, number>();
  asked = 0;
  server = createServer((request, response) => {
    const count = (calls.get(request.socket) ?? 0) + 1;
    calls.set(request.socket, count);
    if (request.method === 'POST') asked++;
    request.resume();
    if (count > callsOfConnection) return void end(request.socket);
    const type = request.method === 'POST' ? 'text/event-stream' : 'application/json';
    response.writeHead(200, { 'content-type': type, connection: 'keep-alive' }).end('{}');
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new EngineHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { maxStreams: 1 });
}
const stream = async (http: EngineHttp) => {
  let text = '';
  await http.receive(
    http.stream((chunk) => (text += chunk.toString()) !== ''),
    '/v1/completions',
    {},
    {},
  );
  return text;
};

it.each([
  ['closed', (socket: Socket) => socket.end()],
  ['reset', (socket: Socket) => socket.resetAndDestroy()],
])('sends a call again, once, when the connection it used had been idle and was %s', async (_, end) => {
  const http = await start(1, end);
  for (let call = 0; call < 4; call++) expect(await http.call('GET', '/health')).toMatchObject({ status: 200 });
  for (let call = 0; call < 4; call++) expect(await stream(http)).toBe('{}');
  // Every second one met a used connection.
  expect(asked).toBe(4 + 2);
});

it.each([
  ['closed', (socket: Socket) => socket.end()],
  ['reset', (socket: Socket) => socket.resetAndDestroy()],
])('asks once when a connection of its own is %s: the engine has had the request', async (_, end) => {
  const http = await start(0, end);
  await expect(stream(http)).rejects.toMatchObject({ code: expect.stringMatching(/^(UND_ERR_SOCKET|ECONNRESET)$/) });
  expect(asked).toBe(1);
});

it('does not send a call again that is to end once it is answered', async () => {
  const stopped = new Error('stopped');
  let call: EngineStream | undefined;
  const http = await start(1, (socket) => {
    call?.onceOpen(stopped, () => undefined);
    socket.end();
  });
  await stream(http);
  call = http.stream(() => true);
  await expect(http.receive(call, '/v1/completions', {}, {})).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  expect(asked).toBe(2);
});

it('throws the first error when the engine has stopped listening', async () => {
  const http = await start(1, (socket) => {
    server.close();
    setImmediate(() => socket.end());
  });
  await stream(http);
  await expect(stream(http)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
});

it('loses no call to a server that closes each connection when it is idle', async () => {
  const http = await start(1_000, () => undefined);
  server.on('request', (request, response) => response.on('close', () => request.socket.end()));
  for (let call = 0; call < 40; call++) expect(await stream(http)).toBe('{}');
});
