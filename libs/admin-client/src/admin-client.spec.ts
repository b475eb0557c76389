import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type AdminApiError, createAdminClient, readData, iterateEvents, iteratePages, decodeText } from './index';

/** The replies of the server, one for each request; the last one repeats. */
let replies: ((response: ServerResponse) => void)[];
let requests: IncomingMessage[];
let collecting: ReturnType<typeof setInterval> | undefined;
const server = createServer((request, response) => {
  requests.push(request);
  (replies.length > 1 ? replies.shift()! : replies[0]!)(response);
});

beforeEach(async () => {
  requests = [];
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  vi.useRealTimers();
  clearInterval(collecting);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const client = (timeoutMs?: number) => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return createAdminClient({ url, token: 'secret', timeoutMs });
};
const json =
  (status: number, body: object, headers = {}) =>
  (response: ServerResponse) => {
    const type = status === 200 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'Content-Type': type, ...headers }).end(JSON.stringify(body));
  };
const problem = (status: number, code: string, more = {}, headers = {}) =>
  json(status, { type: 'urn', title: 't', status, detail: 'why', instance: 'id', code, ...more }, headers);
const events = (text: string) => (response: ServerResponse) =>
  void response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(text);
const pools = (timeoutMs?: number) => readData(client(timeoutMs).GET('/api/v1/pools'));
const catchError = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error as AdminApiError,
  );

it('sends the token, and ids in paths encoded', async () => {
  replies = [json(200, {})];
  const path = { pool: 'p', job: 'a/b' };
  await readData(client().GET('/api/v1/pools/{pool}/jobs/{job}', { params: { path } }));
  expect([requests[0]!.url, requests[0]!.headers.authorization]).toEqual([
    '/api/v1/pools/p/jobs/base64url:YS9i',
    'Bearer secret',
  ]);
});

it('throws the problem of a reply, with code, field, reason and the time of a repeat', async () => {
  replies = [problem(400, 'VALIDATION_FAILED', { retryable: false, field: 'limit', retryAfterMs: 7 })];
  const found = { code: 'VALIDATION_FAILED', reason: 'why', field: 'limit', retryable: false, retryAfterMs: 7 };
  expect(await catchError(pools())).toMatchObject({ ...found, status: 400, requestId: 'id' });
});

it('throws a typed error without a reply, without one in time, and for the reply of another program', async () => {
  replies = [(response) => response.destroy()];
  expect(await catchError(pools())).toMatchObject({ code: 'UNREACHABLE', retryable: true });
  replies = [() => undefined];
  expect(await catchError(pools(50))).toMatchObject({ code: 'TIMED_OUT', retryable: true });
  // The head of the reply comes, its body does not.
  replies = [(response) => response.writeHead(200, { 'Content-Length': 9 }).flushHeaders()];
  expect(await catchError(pools(50))).toMatchObject({ code: 'TIMED_OUT' });
  replies = [(response) => response.writeHead(502).end('<html>')];
  expect(await catchError(pools())).toMatchObject({ code: 'UNEXPECTED_REPLY', status: 502, retryable: true });
  replies = [(response) => response.end('<html>')];
  expect(await catchError(pools())).toMatchObject({ code: 'UNEXPECTED_REPLY', retryable: false });
});

it('keeps its deadline, and ends a stream that its caller ends, whatever is collected as garbage meanwhile', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  replies = [() => undefined];
  const late = catchError(pools(500));
  collecting = setInterval(collect, 20);
  expect(await late).toMatchObject({ code: 'TIMED_OUT' });

  // The body of the reply stops in the middle.
  replies = [
    (response) => response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 9 }).write('{'),
  ];
  expect(await catchError(pools(500))).toMatchObject({ code: 'TIMED_OUT' });

  replies = [
    (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('id: 7\nevent: x\ndata: {"sequence":1}\n\n');
    },
  ];
  const stop = new AbortController();
  const stream = iterateEvents(client(), 'p', { signal: stop.signal });
  await stream.next();
  const connection = requests.at(-1)!.socket;
  for (let times = 0; times < 3; times++) collect();
  const end = stream.next();
  stop.abort();
  expect(await end).toMatchObject({ done: true });
  await expect.poll(() => connection.destroyed).toBe(true);
});

it('repeats a read that is answered 429 a few times, and a change never', async () => {
  const refusal = problem(429, 'RATE_LIMITED', { retryable: true }, { 'Retry-After': '0' });
  replies = [refusal, refusal, json(200, { pools: ['p'] })];
  expect(await pools()).toEqual({ pools: ['p'] });
  replies = [refusal];
  requests = [];
  expect(await catchError(pools())).toMatchObject({ code: 'RATE_LIMITED' });
  expect(requests).toHaveLength(5);
  requests = [];
  const change = client().POST('/api/v1/pools/{pool}/pause', { params: { path: { pool: 'p' } } });
  expect(await catchError(readData(change))).toMatchObject({ code: 'RATE_LIMITED' });
  expect(requests).toHaveLength(1);
  // A pause that the caller would not expect is left to the caller.
  replies = [problem(429, 'RATE_LIMITED', {}, { 'Retry-After': '3600' })];
  requests = [];
  expect(await catchError(pools())).toMatchObject({ code: 'RATE_LIMITED' });
  expect(requests).toHaveLength(1);
});

it('reads all pages', async () => {
  replies = [json(200, { servers: [1], cursor: 'c&' }), json(200, { servers: [2] })];
  const of = client();
  const read = (cursor?: string) => {
    const params = { path: { pool: 'p' }, query: { cursor } };
    return readData(of.GET('/api/v1/pools/{pool}/servers', { params }));
  };
  const found = [];
  for await (const { servers } of iteratePages(read)) found.push(...servers);
  expect(found).toEqual([1, 2]);
  expect(requests.map(({ url }) => url)).toEqual(['/api/v1/pools/p/servers', '/api/v1/pools/p/servers?cursor=c%26']);
});

it('reads events, and after a broken or ended connection continues behind the last one', async () => {
  const event = (id: number) => `id: ${id}\nevent: x\ndata: {"sequence":${id}}\n\n`;
  replies = [
    // An event in two parts; the second one is not complete when the connection breaks.
    (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(`:\n\n${event(1).slice(0, 9)}`);
      response.write(`${event(1).slice(9)}${event(2).slice(0, 9)}`, () => response.destroy());
    },
    problem(503, 'OVERLOADED', { retryable: true }),
    events(event(2)),
    events(event(3)),
  ];
  const stop = new AbortController();
  const found = [];
  for await (const { id } of iterateEvents(client(), 'p', {
    query: { type: ['job.restored', 'round.opened'] },
    signal: stop.signal,
  })) {
    found.push(id);
    if (id === '3') stop.abort();
  }
  expect(found).toEqual(['1', '2', '3']);
  expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '1', '2']);
  expect(requests[0]!.url).toBe('/api/v1/pools/p/events?type=job.restored&type=round.opened');
});

it('continues a stream that breaks before its first event from where it began', async () => {
  replies = [
    (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('id: 7\n\n:live\n\n', () => response.destroy());
    },
    events('id: 8\nevent: x\ndata: {"sequence":1}\n\n'),
  ];
  const stop = new AbortController();
  expect(await iterateEvents(client(), 'p', { signal: stop.signal }).next()).toMatchObject({ value: { id: '8' } });
  stop.abort();
  expect(requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '7']);
});

it('gives a stream up that ends again and again before its first event', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  replies = [events('')];
  const error = catchError(iterateEvents(client(), 'p').next());
  const settled = vi.fn<() => void>();
  void error.then(settled);
  await vi.waitFor(
    async () => {
      await vi.advanceTimersByTimeAsync(10_000);
      expect(settled).toHaveBeenCalled();
    },
    { timeout: 30_000 },
  );
  expect(await error).toMatchObject({ code: 'UNREACHABLE', retryable: true });
  expect(requests).toHaveLength(10);
});

it('ends a stream of events with an error that a repeat does not mend', async () => {
  replies = [problem(403, 'FORBIDDEN', { retryable: false })];
  expect(await catchError(iterateEvents(client(), 'p').next())).toMatchObject({ code: 'FORBIDDEN' });
  expect(requests).toHaveLength(1);
});

it('reads a stream for longer than the deadline of a call, and reports a connection that breaks', async () => {
  let open: ServerResponse;
  replies = [
    (response) => {
      open = response;
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' }).write('{}\n');
    },
  ];
  const params = { path: { pool: 'p', job: 'j' } };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const call = client().GET('/api/v1/pools/{pool}/jobs/{job}/longtail/export', { params, parseAs: 'stream' });
  const text = decodeText((await readData(call))!);
  expect(await text.next()).toMatchObject({ value: '{}\n' });
  const second = text.next();
  // The deadline of 30 s passes, not the 40 s that a stream may be silent for.
  vi.advanceTimersByTime(35_000);
  open!.write('[]\n');
  expect(await second).toMatchObject({ value: '[]\n' });
  open!.destroy();
  expect(await catchError(text.next())).toMatchObject({ code: 'UNREACHABLE' });
});
