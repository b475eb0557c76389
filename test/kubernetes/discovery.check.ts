import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManagedProcess } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { TestSystem } from '../system/test-system';
import { rendered } from './chart';
import { KubernetesClient, type KubernetesObject } from './kubernetes-client';

const NAMESPACE = 'discovery';
/** Namespace in which everything.yaml discovers engines. */
const ENGINES = 'discovered-engines';
const PORT = 8_000;
/** The address of the API server in the network namespace, which its certificate names. */
const HOST = new URL(inject('apiServer').url).hostname;
const OPTIONS = ['-f', 'test/kubernetes/values/everything.yaml', '--set', `discovery.namespace=${ENGINES}`];
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${ENGINES}/endpointslices`;

const admin = new KubernetesClient(inject('apiServer'));
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-service-account-'));
/** A way to the API server whose connections the tests break. */
const links = new Set<Socket>();
const link = createServer((client) => {
  const { hostname, port } = new URL(inject('apiServer').url);
  const server = connect(Number(port), hostname);
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    links.add(from);
    from.pipe(to);
    from.on('error', () => undefined);
    from.on('close', () => (to.destroy(), links.delete(from)));
  }
});
const breakLinks = () => links.forEach((socket) => socket.destroy());
let accounts: string[];
let system: TestSystem;

const secret = (name: string): KubernetesObject => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name } });

beforeAll(async () => {
  const objects = await rendered('broomwagon', '--namespace', NAMESPACE, ...OPTIONS);
  await admin.createNamespace(NAMESPACE);
  await admin.createNamespace(ENGINES);
  const kinds = new Set(['ServiceAccount', 'Role', 'RoleBinding']);
  for (const object of objects.filter(({ kind }) => kinds.has(kind))) await admin.create(object, NAMESPACE);
  accounts = objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name);

  await admin.create(secret('first'), NAMESPACE);
  writeFileSync(join(folder, 'token'), await admin.createToken('broomwagon-load-balancer', NAMESPACE, 'first'));
  writeFileSync(join(folder, 'ca.crt'), inject('apiServer').ca);
  writeFileSync(join(folder, 'namespace'), NAMESPACE);
  system = await TestSystem.start({ balancers: 0, coordinators: 0, workers: 0, engines: 0 });
  await new Promise<void>((resolve) => link.listen(0, HOST, resolve));
  const settings = objects.find(
    ({ kind, metadata: { name } }) => kind === 'ConfigMap' && name.endsWith('load-balancer'),
  );
  const found = Object.entries(settings!.data!).filter(([name]) => name.startsWith('K8S_'));
  await system.startApp('load-balancer', 'load-balancer-1', {
    ...Object.fromEntries(found),
    K8S_API_URL: `https://${HOST}:${(link.address() as AddressInfo).port}`,
    K8S_SERVICE_ACCOUNT_DIR: folder,
    K8S_DRAIN_MS: '1000',
    ENGINE_POOL: system.pool,
    SERVER_FAILED_AFTER_MS: '3000',
  });
});
afterAll(async () => {
  await system?.stop();
  link.close();
  rmSync(folder, { recursive: true });
});

const toAddress = (engine: number) => `10.244.0.${engine}`;

function startEngine(engine: number): Promise<ManagedProcess> {
  const host = toAddress(engine);
  const program = 'dist/lab/engine-simulator/src/main.js';
  const options = ['--engines', '1', '--host', host, '--port', String(PORT)];
  const command: [string, ...string[]] = [process.execPath, program, ...options];
  return system.run({ name: `engine-${engine}`, command, ready: `http://${host}:${PORT}/health` });
}

/** The object that the controller of EndpointSlices would write for the service `vllm`. */
function buildSlice(endpoints: { addresses: string[]; conditions: object }[]): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'vllm', labels: { 'kubernetes.io/service-name': 'vllm' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: PORT }],
    endpoints,
  };
}

async function publish(engines: readonly number[], terminating: readonly number[] = []): Promise<void> {
  const endpoint = (engine: number, ends: boolean) => ({
    addresses: [toAddress(engine)],
    conditions: { ready: !ends, serving: true, terminating: ends },
  });
  const slice = buildSlice([
    ...engines.map((engine) => endpoint(engine, false)),
    ...terminating.map((engine) => endpoint(engine, true)),
  ]);
  const { status } = await admin.send('PUT', `${SLICES}/vllm`, slice);
  if (status === 404) await admin.create(slice, ENGINES);
  else expect(status).toBe(200);
}

/** The states of the servers of the pool by the last part of their addresses. */
async function states(): Promise<Record<string, string>> {
  const { servers } = await system.call('server.list', {});
  return Object.fromEntries(servers.map(({ endpoint, state }) => [/(\d+):\d+$/.exec(endpoint)![1]!, state]));
}

it('may list and watch the EndpointSlices of one namespace, and nothing else; the other accounts may do nothing', async () => {
  const asked: [string, string, string, string][] = [
    ['list', 'discovery.k8s.io', 'endpointslices', ENGINES],
    ['watch', 'discovery.k8s.io', 'endpointslices', ENGINES],
    ['get', 'discovery.k8s.io', 'endpointslices', ENGINES],
    ['create', 'discovery.k8s.io', 'endpointslices', ENGINES],
    ['list', 'discovery.k8s.io', 'endpointslices', NAMESPACE],
    ['watch', 'discovery.k8s.io', 'endpointslices', NAMESPACE],
    ...[ENGINES, NAMESPACE].flatMap((namespace): [string, string, string, string][] => [
      ['get', '', 'secrets', namespace],
      ['list', '', 'pods', namespace],
      ['create', '', 'pods', namespace],
      ['get', '', 'configmaps', namespace],
      ['*', '*', '*', namespace],
    ]),
  ];
  expect(accounts.length).toBe(7);
  for (const account of accounts) {
    const client = admin.as(await admin.createToken(account, NAMESPACE));
    const allowed = [];
    for (const request of asked) if (await client.may(...request)) allowed.push(request.join(' '));
    const discovers = account === 'broomwagon-load-balancer';
    const rights = ['list', 'watch'].map((verb) => `${verb} discovery.k8s.io endpointslices ${ENGINES}`);
    expect(allowed, account).toEqual(discovers ? rights : []);
    expect((await client.get(SLICES)).status).toBe(discovers ? 200 : 403);
    expect((await client.get(`/api/v1/namespaces/${NAMESPACE}/secrets/first`)).status).toBe(403);
    expect((await client.send('POST', SLICES, buildSlice([]))).status).toBe(403);
  }
});

/** Registers a worker. @returns its epoch */
async function registered(workerId: string) {
  const { workerEpoch } = await system.call('worker.register', { workerId, registrationId: 'r1', ttlMs: 120_000 });
  return workerEpoch;
}

/** How many lists of EndpointSlices of one namespace the API server has answered, and how many watches are open. */
async function requests(): Promise<{ lists: number; watches: number }> {
  const text = String((await admin.get('/metrics')).body);
  const sum = (pattern: RegExp) => [...text.matchAll(pattern)].reduce((all, [, value]) => all + Number(value), 0);
  const of = (name: string, verb: string) =>
    new RegExp(`^${name}\\{(?=.*resource="endpointslices")(?=.*scope="namespace").*verb="${verb}".*\\} (\\S+)$`, 'gm');
  return {
    lists: sum(of('apiserver_request_total', 'LIST')),
    watches: sum(of('apiserver_longrunning_requests', 'WATCH')),
  };
}

it('registers ready pods, drains terminating pods, and gives up deleted pods, by a watch', async () => {
  await expect.poll(requests).toMatchObject({ watches: 1 });
  const { lists } = await requests();
  const first = await startEngine(11);
  await startEngine(12);
  await publish([11, 12]);
  await expect.poll(states).toEqual({ 11: 'ready', 12: 'ready' });
  // An engine that runs nothing is gone as soon as it drains: each has a request.
  const workerEpoch = await registered('w0');
  for (const id of ['a', 'b']) {
    await system.call('lb.acquire', { workerId: 'w0', workerEpoch, acquireId: id, requestId: id });
  }
  await publish([12], [11]);
  await expect.poll(states).toMatchObject({ 11: expect.stringMatching(/^drain/) as string, 12: 'ready' });
  await first.stop();
  await publish([12]);
  await expect.poll(states).toMatchObject({ 12: 'ready' });
  await expect.poll(async () => (await states())[11] ?? 'removed').toMatch(/^(failed|removed)$/);
  expect(await requests()).toEqual({ lists, watches: 1 });
});

it('watches again after its connection broke, and finds the changes since', async () => {
  const { lists } = await requests();
  await startEngine(16);
  breakLinks();
  await publish([12, 16]);
  await expect.poll(states).toMatchObject({ 12: 'ready', 16: 'ready' });
  await expect.poll(requests).toEqual({ lists: lists + 1, watches: 1 });
});

it('continues with the next token when the one before is no longer valid', async () => {
  const used = await admin.createToken('broomwagon-load-balancer', NAMESPACE, 'first');
  await admin.create(secret('second'), NAMESPACE);
  writeFileSync(join(folder, 'token'), await admin.createToken('broomwagon-load-balancer', NAMESPACE, 'second'));
  await admin.send('DELETE', `/api/v1/namespaces/${NAMESPACE}/secrets/first`);
  await expect.poll(async () => (await admin.as(used).get(SLICES)).status).toBe(401);
  breakLinks();
  await startEngine(13);
  await publish([12, 13]);
  await expect.poll(states).toMatchObject({ 12: 'ready', 13: 'ready' });
});

const failedRuns = async () =>
  Number(/_task_failures_total\{task="discovery".*\} (\d+)$/m.exec(await system.metrics('load-balancer-1'))![1]);

it('keeps its servers while it may not list, and finds more afterwards', async () => {
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${ENGINES}/rolebindings`;
  const { body: binding } = await admin.get(`${path}/broomwagon-discovery`);
  await admin.send('DELETE', `${path}/broomwagon-discovery`);
  const discoverer = admin.as(await admin.createToken('broomwagon-load-balancer', NAMESPACE));
  await expect.poll(async () => (await discoverer.get(SLICES)).status).toBe(403);
  breakLinks();
  await expect.poll(() => system.logs()).toContain('403');
  await startEngine(14);
  await publish([12, 13, 14]);
  const failures = await failedRuns();
  await expect.poll(failedRuns).toBeGreaterThan(failures + 1);
  expect(await states()).toMatchObject({ 12: 'ready', 13: 'ready' });
  expect(await states()).not.toHaveProperty('14');
  const { apiVersion, kind, metadata, subjects, roleRef } = binding;
  await admin.create({ apiVersion, kind, metadata: { name: metadata.name }, subjects, roleRef }, ENGINES);
  await expect.poll(states).toMatchObject({ 12: 'ready', 13: 'ready', 14: 'ready' });
});

it('counts acquires that wait without engines, so that KEDA starts some, and grants them when one comes', async () => {
  const engines = [12, 13, 14, 16];
  await publish([], engines);
  await expect.poll(async () => Object.values(await states())).not.toContain('ready');
  for (const engine of engines) await system.process(`engine-${engine}`).stop();
  await admin.send('DELETE', `${SLICES}/vllm`);
  const workerEpoch = await registered('w1');
  const acquire = { workerId: 'w1', workerEpoch, acquireId: 'a1', requestId: 'q1', waitMs: 20_000 };
  const granted = system.client.callWithRetry(system.pool, 'lb.acquire', acquire, { deadlineMs: 100_000 });
  await expect.poll(() => system.metrics('load-balancer-1')).toMatch(/^broomwagon_waiters\{[^}]*\} 1$/m);
  await startEngine(15);
  await publish([15]);
  expect(await granted).toMatchObject({ endpoint: `http://${toAddress(15)}:${PORT}` });
});
