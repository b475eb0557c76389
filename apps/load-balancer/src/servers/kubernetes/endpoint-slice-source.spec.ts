import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createSecureServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { EndpointSliceSource } from './endpoint-slice-source';
import { KubernetesApi } from './kubernetes-api';

const SIGNAL = new AbortController().signal;
const dir = mkdtempSync(join(tmpdir(), 'service-account-'));
let server: Server;
let url: string;
let asked: IncomingMessage[] = [];
let answer: (page: string | null) => { status: number; body: string };

const slice = (addresses: [string, object?][], ports: object[]) => ({
  endpoints: addresses.map(([address, conditions]) => ({ addresses: [address], conditions })),
  ports,
});
const list = (items: object[], next = '') => ({
  status: 200,
  body: JSON.stringify({ kind: 'EndpointSliceList', metadata: { continue: next }, items }),
});

beforeAll(async () => {
  for (const [name, text] of Object.entries({ token: 'secret\n', namespace: 'rl' }))
    writeFileSync(join(dir, name), text);
  server = createServer((request, response) => {
    asked.push(request);
    const { status, body } = answer(new URL(request.url!, url).searchParams.get('continue'));
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
  asked = [];
});

const source = (more: object = {}) =>
  new EndpointSliceSource(new KubernetesApi({ url, serviceAccountDir: dir }), {
    k8sLabelSelector: 'app=vllm,role in (actor)',
    k8sDrainMs: 20_000,
    ...more,
  });

it('finds the ready endpoints of all pages by their labels, and those that end, as the service account of the pod', async () => {
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
          { endpoints: null, ports: null },
        ]);
  expect(await source().engines(SIGNAL)).toEqual([
    { url: 'http://10.0.0.1:8000' },
    { url: 'http://10.0.0.2:8000' },
    { url: 'http://10.0.0.4:8000', drainMs: 20_000 },
    { url: 'http://[fd00::5]:8000' },
  ]);
  const first = new URL(asked[0]!.url!, url);
  expect(first.pathname).toBe('/apis/discovery.k8s.io/v1/namespaces/rl/endpointslices');
  expect(first.searchParams.get('labelSelector')).toBe('app=vllm,role in (actor)');
  expect(asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer secret', 'Bearer secret']);
});

it('takes the port of the given name, and https where the port names it', async () => {
  const ports = [
    { name: 'metrics', port: 9090 },
    { name: 'api', port: 8443, appProtocol: 'https' },
  ];
  answer = () => list([slice([['10.0.0.1']], ports)]);
  expect(await source({ k8sPortName: 'api', k8sNamespace: 'other' }).engines(SIGNAL)).toEqual([
    { url: 'https://10.0.0.1:8443' },
  ]);
  expect(asked[0]!.url).toContain('/namespaces/other/');
  expect(await source({ k8sPortName: 'none' }).engines(SIGNAL)).toEqual([]);
});

it('quotes the answer of an API server that refuses, and fails without a service account', async () => {
  answer = () => ({ status: 403, body: '{"message":"endpointslices is forbidden"}' });
  await expect(source().engines(SIGNAL)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('403') as string,
  });
  answer = () => ({ status: 200, body: 'not json' });
  await expect(source().engines(SIGNAL)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const api = new KubernetesApi({ url, serviceAccountDir: join(dir, 'nothing') });
  const nobody = new EndpointSliceSource(api, { k8sLabelSelector: 'a', k8sDrainMs: 0 });
  await expect(nobody.engines(SIGNAL)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

it('asks over HTTPS and trusts nothing but the authority of the service account', async () => {
  const secure = createSecureServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, (_, response) => {
    response.end(list([slice([['10.0.0.1']], [{ port: 8000 }])]).body);
  });
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
  const access = { url: `https://127.0.0.1:${(secure.address() as AddressInfo).port}`, serviceAccountDir: dir };
  const engines = () =>
    new EndpointSliceSource(new KubernetesApi(access), { k8sLabelSelector: 'a', k8sDrainMs: 0 }).engines(SIGNAL);
  writeFileSync(join(dir, 'ca.crt'), TEST_CERTIFICATE);
  expect(await engines()).toEqual([{ url: 'http://10.0.0.1:8000' }]);
  writeFileSync(join(dir, 'ca.crt'), '');
  await expect(engines()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('self-signed') as string,
  });
  secure.close();
});
