import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createSecureServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { outages } from '@broomwagon/contracts';
import { TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { EndpointSliceSource } from './endpoint-slice-source';
import { KubernetesApi } from './kubernetes-api';

Logger.overrideLogger(false);

let stopped: AbortController;
const engines = (of: EndpointSliceSource) => of.engines(stopped.signal);
const dir = mkdtempSync(join(tmpdir(), 'service-account-'));
let server: Server;
let url: string;
let asked: IncomingMessage[] = [];
let answer: (page: string | null) => { status: number; body: string };
/** The open watches, and the handler of the next watch. */
let watches: ServerResponse[] = [];
let onWatch: (response: ServerResponse) => void;

let made = 0;
const slice = (addresses: [string, object?][], ports: object[] = [{ port: 8_000 }], name = `slice-${++made}`) => ({
  metadata: { name },
  endpoints: addresses.map(([address, conditions]) => ({ addresses: [address], conditions })),
  ports,
});
const list = (items: object[], next = '') => ({
  status: 200,
  body: JSON.stringify({ kind: 'EndpointSliceList', metadata: { continue: next, resourceVersion: '7' }, items }),
});

beforeAll(async () => {
  for (const [name, text] of Object.entries({ token: 'secret\n', namespace: 'rl' }))
    writeFileSync(join(dir, name), text);
  server = createServer((request, response) => {
    asked.push(request);
    const query = new URL(request.url!, url).searchParams;
    if (query.has('watch')) return onWatch(response);
    const { status, body } = answer(query.get('continue'));
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  rmSync(dir, { recursive: true });
});
beforeEach(() => {
  outages.clear();
  asked = [];
  watches = [];
  stopped = new AbortController();
  onWatch = (response) => {
    response.writeHead(200).flushHeaders();
    watches.push(response);
  };
});
afterEach(() => stopped.abort());

const source = (more: object = {}, watchSilenceMs?: number) =>
  new EndpointSliceSource(new KubernetesApi({ url, serviceAccountDir: dir, watchSilenceMs }), {
    k8sLabelSelector: 'app=vllm,role in (actor)',
    k8sDrainMs: 20_000,
    ...more,
  });

it('finds the ready and terminating endpoints of all pages by their labels, as the service account of the pod', async () => {
  const ports = [{ name: 'http', port: 8000 }];
  answer = (page) =>
    page === null
      ? list(
          [
            slice(
              [
                ['10.0.0.1', { ready: true }],
                ['10.0.0.2', {}],
              ],
              ports,
            ),
          ],
          'page 2',
        )
      : list([
          slice(
            [
              ['10.0.0.3', { ready: false }],
              ['10.0.0.4', { ready: false, serving: true, terminating: true }],
            ],
            ports,
          ),
          slice(
            [
              ['fd00::5', { ready: true }],
              ['10.0.0.1', { ready: true }],
            ],
            ports,
          ),
          { metadata: { name: 'empty' }, endpoints: null, ports: null },
        ]);
  expect(await engines(source())).toEqual([
    { url: 'http://10.0.0.1:8000' },
    { url: 'http://10.0.0.2:8000' },
    { url: 'http://10.0.0.3:8000', isNotReady: true },
    { url: 'http://10.0.0.4:8000', drainMs: 20_000 },
    { url: 'http://[fd00::5]:8000' },
  ]);
  const first = new URL(asked[0]!.url!, url);
  expect(first.pathname).toBe('/apis/discovery.k8s.io/v1/namespaces/rl/endpointslices');
  expect(first.searchParams.get('labelSelector')).toBe('app=vllm,role in (actor)');
  expect(asked.map(({ headers }) => headers.authorization)).toEqual(asked.map(() => 'Bearer secret'));
  expect(asked).toHaveLength(3);
});

it('takes the port of the given name, and https where the port names it', async () => {
  const ports = [
    { name: 'metrics', port: 9090 },
    { name: 'api', port: 8443, appProtocol: 'https' },
  ];
  answer = () => list([slice([['10.0.0.1']], ports)]);
  expect(await engines(source({ k8sPortName: 'api', k8sNamespace: 'other' }))).toEqual([
    { url: 'https://10.0.0.1:8443' },
  ]);
  expect(asked[0]!.url).toContain('/namespaces/other/');
  expect(await engines(source({ k8sPortName: 'none' }))).toEqual([]);
});

it('quotes the answer of an API server that refuses, and fails without a service account', async () => {
  answer = () => ({ status: 403, body: '{"message":"endpointslices is forbidden"}' });
  await expect(engines(source())).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('403') as string,
  });
  answer = () => ({ status: 200, body: 'not json' });
  await expect(engines(source())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const api = new KubernetesApi({ url, serviceAccountDir: join(dir, 'nothing') });
  const nobody = new EndpointSliceSource(api, { k8sLabelSelector: 'a', k8sDrainMs: 0 });
  await expect(engines(nobody)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

it('asks over HTTPS and trusts nothing but the authority of the service account', async () => {
  const secure = createSecureServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, (_, response) => {
    response.end(list([slice([['10.0.0.1']], [{ port: 8000 }])]).body);
  });
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
  const access = { url: `https://127.0.0.1:${(secure.address() as AddressInfo).port}`, serviceAccountDir: dir };
  const found = () =>
    engines(new EndpointSliceSource(new KubernetesApi(access), { k8sLabelSelector: 'a', k8sDrainMs: 0 }));
  writeFileSync(join(dir, 'ca.crt'), TEST_CERTIFICATE);
  expect(await found()).toEqual([{ url: 'http://10.0.0.1:8000' }]);
  writeFileSync(join(dir, 'ca.crt'), '');
  await expect(found()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('self-signed') as string,
  });
  secure.close();
});

const send = (...events: object[]) =>
  watches.at(-1)!.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
const urls = async (of: EndpointSliceSource) => (await engines(of)).map((engine) => engine.url);

it('lists once, and then follows the changes that a watch reports since the version of the list', async () => {
  answer = () => list([slice([['10.0.0.1']], undefined, 'a'), slice([['10.0.0.2']], undefined, 'b')]);
  const one = source();
  expect(await urls(one)).toEqual(['http://10.0.0.1:8000', 'http://10.0.0.2:8000']);
  const query = new URL(asked[1]!.url!, url).searchParams;
  expect(Object.fromEntries(query)).toEqual({
    labelSelector: 'app=vllm,role in (actor)',
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '300',
    resourceVersion: '7',
  });
  const added = JSON.stringify({ type: 'ADDED', object: slice([['10.0.0.3']], undefined, 'c') });
  watches[0]!.write(added.slice(0, 40));
  watches[0]!.write(`${added.slice(40)}\n`);
  send({ type: 'MODIFIED', object: slice([['10.0.0.1', { terminating: true }]], undefined, 'a') });
  send({ type: 'DELETED', object: slice([], undefined, 'b') }, { type: 'BOOKMARK', object: { metadata: {} } });
  await expect
    .poll(() => engines(one))
    .toEqual([{ url: 'http://10.0.0.1:8000', drainMs: 20_000 }, { url: 'http://10.0.0.3:8000' }]);
  expect(asked).toHaveLength(2);
});

const EXPIRED = { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old resource version: 7 (9)' } };

it.each<[string, () => unknown]>([
  ['ends it', () => watches[0]!.end()],
  ['has no longer the changes since the list', () => send(EXPIRED)],
  ['breaks the connection', () => watches[0]!.destroy()],
  ['sends something else', () => watches[0]!.write('<html>\n')],
  ['is silent for too long', () => undefined],
])('lists and watches again when the API server %s', async (_, end) => {
  let address = '10.0.0.1';
  answer = () => list([slice([[address]], undefined, 'a')]);
  const one = source({}, 500);
  expect(await urls(one)).toEqual(['http://10.0.0.1:8000']);
  address = '10.0.0.9';
  end();
  await expect.poll(() => urls(one)).toEqual(['http://10.0.0.9:8000']);
  send({ type: 'ADDED', object: slice([['10.0.0.3']], undefined, 'c') });
  await expect.poll(() => urls(one)).toEqual(['http://10.0.0.9:8000', 'http://10.0.0.3:8000']);
});

it('fails while the API server cannot list, and continues afterwards', async () => {
  answer = () => list([slice([['10.0.0.1']], undefined, 'a')]);
  const one = source();
  await engines(one);
  answer = () => ({ status: 503, body: 'starting' });
  watches[0]!.destroy();
  await expect.poll(() => engines(one).catch((error: Error) => error.message)).toContain('503');
  answer = () => list([slice([['10.0.0.2']], undefined, 'a')]);
  expect(await urls(one)).toEqual(['http://10.0.0.2:8000']);
});

it('lists each time while watches are refused, and warns once', async () => {
  const warn = vi.spyOn(Logger.prototype, 'warn');
  onWatch = (response) => response.writeHead(403).end('{"message":"cannot watch endpointslices"}');
  let address = '10.0.0.1';
  answer = () => list([slice([[address]], undefined, 'a')]);
  const one = source();
  expect(await urls(one)).toEqual(['http://10.0.0.1:8000']);
  address = '10.0.0.2';
  expect(await urls(one)).toEqual(['http://10.0.0.2:8000']);
  expect(asked.filter((request) => request.url!.includes('watch=true'))).toHaveLength(2);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    expect.anything(),
    expect.stringContaining('cannot watch endpointslices'),
  );
  warn.mockRestore();
});

it('logs the begin and the end of an outage of the API server, however often the watch fails', async () => {
  const lines: unknown[] = [];
  const spies = (['warn', 'log'] as const).map((level) =>
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => void lines.push(parts.at(-1))),
  );
  answer = () => list([slice([['10.0.0.1']], undefined, 'a')]);
  const one = source();
  await engines(one);
  // Two watches in a row fail for the same reason.
  for (const count of [2, 3]) {
    send(EXPIRED);
    await expect.poll(() => engines(one).then(() => watches.length)).toBe(count);
  }
  const bookmark = { type: 'BOOKMARK', object: { metadata: {} } };
  send(bookmark, bookmark);
  await expect.poll(() => lines.length).toBe(2);
  send({ type: 'ADDED', object: slice([['10.0.0.3']], undefined, 'c') });
  await expect.poll(() => urls(one)).toContain('http://10.0.0.3:8000');
  expect(lines).toEqual([
    expect.stringMatching(/^Outage begins: the API server .* at http:.*too old resource version/),
    expect.stringMatching(/^Outage has ended: the API server .* works again after [\d.]+ s$/),
  ]);
  for (const spy of spies) spy.mockRestore();
});

it('ends its watch when it is stopped', async () => {
  answer = () => list([]);
  await engines(source());
  const closed = new Promise((resolve) => watches[0]!.on('close', resolve));
  stopped.abort();
  await closed;
});

it('finds one engine for each pod, whatever families its addresses have, and two pods at one address', async () => {
  const pods = (name: string, ...endpoints: [string, string, object?][]) => ({
    metadata: { name },
    endpoints: endpoints.map(([address, uid, conditions]) => ({
      addresses: [address],
      conditions,
      targetRef: { uid },
    })),
    ports: [{ port: 8_000 }],
  });
  answer = () =>
    list([
      pods('six', ['fd00::1', 'pod-1'], ['fd00::2', 'pod-2']),
      pods('four', ['10.0.0.1', 'pod-1'], ['10.0.0.9', 'old', { terminating: true }], ['10.0.0.9', 'new']),
    ]);
  expect(await engines(source())).toEqual([
    { url: 'http://10.0.0.1:8000', identity: 'pod-1' },
    { url: 'http://[fd00::2]:8000', identity: 'pod-2' },
    { url: 'http://10.0.0.9:8000', identity: 'old', drainMs: 20_000 },
    { url: 'http://10.0.0.9:8000', identity: 'new' },
  ]);
});
