import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EngineHttp } from './engine-http';

describe('EngineHttp', () => {
  let server: Server;
  let url: string;
  /** Answers with the status its path names. */
  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume();
      response.writeHead(Number(request.url!.slice(1)), { 'content-type': 'application/json' });
      response.end(JSON.stringify({ authorization: request.headers.authorization }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it.each([
    [400, 'ENGINE_REJECTED'],
    [413, 'ENGINE_REJECTED'],
    [422, 'ENGINE_REJECTED'],
    // Another engine, or this one a little later, may take the request: it must not fail for good.
    [401, 'ENGINE_ERROR'],
    [403, 'ENGINE_ERROR'],
    [404, 'ENGINE_ERROR'],
    [429, 'ENGINE_BUSY'],
    [503, 'ENGINE_BUSY'],
    [200, 'ENGINE_PROTOCOL'],
  ])('a stream answered by %i is %s', async (status, code) => {
    const http = new EngineHttp(url);
    const received = http.receive(
      http.stream(() => true),
      `/${status}`,
      {},
      {},
    );
    await expect(received).rejects.toMatchObject({ code });
  });

  it('sends the key', async () => {
    const { text } = await new EngineHttp(url, { apiKey: 'k' }).call('GET', '/200');
    expect(text).toBe('{"authorization":"Bearer k"}');
  });
});
