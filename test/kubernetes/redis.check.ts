import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, FunctionRunner, WorkerStore } from '@broomwagon/state';
import { freePort, ProcessGroup, TEST_CERTIFICATE, TEST_KEY, testNatsUrl } from '@broomwagon/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { rendered } from './chart';
import type { KubernetesObject } from './kubernetes-client';
import { RedisPods } from './redis-pods';

const APPS = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];
const CLIENT_TLS = ['--set', 'redis.tlsSecret=redis-tls,redis.clientTlsSecret=services-tls'];
const WAIT = { timeout: 180_000, interval: 500 };
const TIMEOUT_MS = 900_000;

let folder: string;
let group: ProcessGroup;
let objects: KubernetesObject[];
let pods: RedisPods;
const opened: { disconnect(): void }[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-redis-pods-'));
  group = new ProcessGroup({ logFolder: join(folder, 'logs') });
});
afterEach(async () => {
  for (const client of opened.splice(0)) client.disconnect();
  await group.stopAll(5_000);
  if (process.env['KEEP']) console.log(folder);
  else rmSync(folder, { recursive: true });
});

const find = (kind: string, name: string) =>
  objects.find((one) => one.kind === kind && one.metadata.name === `broomwagon-${name}`)!;

async function render(mode: string, ...options: string[]): Promise<void> {
  const nats = `nats.enabled=false,nats.url=${testNatsUrl()}`;
  objects = await rendered('broomwagon', '--namespace', 'rl', '--set', `redis.mode=${mode},${nats}`, ...options);
  for (const object of objects) object.metadata.namespace ??= 'rl';
  pods = new RedisPods(objects, group, folder);
}

const allReady = () => expect.poll(() => pods.ready(), WAIT).toEqual(pods.names);
const getSecret = (app: string) => find('Secret', app)['stringData'] as Record<string, string>;

/** Starts the services with the ConfigMaps and Secrets of the chart. Returns the addresses of their readiness. */
async function startServices(): Promise<string[]> {
  const pages: string[] = [];
  for (const app of APPS) {
    const port = await freePort();
    const { REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY, ...settings } = find('ConfigMap', app).data!;
    expect(REDIS_TLS_CA).toBe('/etc/broomwagon/redis/ca.crt');
    const tls = join(folder, pods.names[0]!, 'redis', 'etc/redis-tls');
    pages.push(`http://127.0.0.1:${port}/readyz`);
    await group.start({
      name: app,
      app,
      environment: {
        ...settings,
        ...getSecret(app),
        REDIS_TLS_CA: join(tls, 'ca.crt'),
        REDIS_TLS_CERT: REDIS_TLS_CERT && join(tls, 'tls.crt'),
        REDIS_TLS_KEY: REDIS_TLS_KEY && join(tls, 'tls.key'),
        // The certificate of the tests has no other name.
        REDIS_TLS_SERVER_NAME: 'localhost',
        HTTP_PORT: String(port),
        // Other tests use this NATS too, with pools in another Redis.
        POOLS: 'default',
      },
      ready: pages.at(-1)!,
      readyTimeoutMs: WAIT.timeout,
    });
  }
  return pages;
}

const fetchStatus = (page: string): Promise<number | undefined> =>
  fetch(page).then(
    ({ status }) => status,
    () => undefined,
  );

/** A worker that the load-balancer's user registers in Redis; undefined when Redis does not take it. */
function registration(): (workerId: string) => Promise<string | undefined> {
  const { REDIS_URL, REDIS_SENTINEL_USER, REDIS_SENTINEL_PASSWORD } = getSecret('load-balancer');
  const redis = connectRedis({
    url: REDIS_URL!,
    sentinelUsername: REDIS_SENTINEL_USER,
    sentinelPassword: REDIS_SENTINEL_PASSWORD,
    tls: REDIS_URL!.startsWith('rediss')
      ? { ca: TEST_CERTIFICATE, servername: 'localhost', cert: TEST_CERTIFICATE, key: TEST_KEY }
      : undefined,
  });
  opened.push(redis);
  const workers = new WorkerStore(new FunctionRunner(redis, 'rollout'));
  return async (workerId) => {
    const answer = await workers
      .register('p', { workerId, registrationId: 'once', ttlMs: TIMEOUT_MS })
      .catch((error: { code?: string }) => {
        expect(error.code).toBe('UNAVAILABLE');
        return undefined;
      });
    return answer?.workerEpoch;
  };
}

async function readRole(name: string): Promise<string> {
  const info = await pods.ask(name, 'info replication').catch(() => '');
  return /role:(\w+)/.exec(info)?.[1] ?? 'none';
}

async function primaryNow(): Promise<string> {
  const roles = await Promise.all(pods.names.map((name) => readRole(name)));
  return pods.names.filter((_, index) => roles[index] === 'master').join();
}

it(
  'with Sentinels a replica replaces the primary, and no restart of pods loses data',
  async () => {
    await render('sentinel', ...CLIENT_TLS);
    const [first, second, third] = pods.names as [string, string, string];
    await pods.startAll();
    await allReady();
    expect(await primaryNow()).toBe(first);
    const pages = await startServices();
    const register = registration();
    const epoch = await register('before');
    expect(epoch).toBeDefined();

    // Services may ask Sentinels for the primary, and no more.
    const { REDIS_SENTINEL_USER: user, REDIS_SENTINEL_PASSWORD: password } = getSecret('worker');
    const sentinel = (command: string) =>
      pods.ask(second, `-p 26379 --user ${user} --pass ${password} --no-auth-warning sentinel ${command}`);
    expect(await sentinel('get-master-addr-by-name main')).toBe(`${pods.toHost(first)}\n6379`);
    expect(await sentinel('failover main')).toContain('NOPERM');

    await pods.kill(first);
    await expect.poll(() => register('after'), WAIT).toBeDefined();
    const successor = await primaryNow();
    expect([second, third]).toContain(successor);
    // The old primary starts again with another address.
    await pods.start(first);
    await allReady();
    expect(await readRole(first)).toBe('slave');
    expect(await register('before')).toBe(epoch);
    await expect.poll(() => Promise.all(pages.map(fetchStatus)), WAIT).toEqual(pages.map(() => 200));

    // All pods restart at once, with other addresses: the Sentinels remember the successor, and no pod starts with old
    // data.
    await pods.ask(successor, 'set kept 1');
    await pods.killAll();
    await pods.startAll();
    await allReady();
    expect(await primaryNow()).toBe(successor);
    expect(await pods.ask(first, 'get kept')).toBe('1');
    await expect.poll(() => register('all-restarted'), WAIT).toBeDefined();

    // A primary that has lost its volume does not start again as an empty primary.
    await pods.kill(successor);
    pods.loseVolume(successor);
    await pods.start(successor);
    await allReady();
    expect(await readRole(successor)).toBe('slave');
    expect(await pods.ask(successor, 'get kept')).toBe('1');
    await expect.poll(() => register('volume-lost'), WAIT).toBeDefined();

    // A primary without its volume does not start empty even if all pods start at once, and no replica answers yet.
    const emptied = await primaryNow();
    await pods.killAll();
    pods.loseVolume(emptied);
    await pods.startAll();
    await allReady();
    expect(await pods.ask(emptied, 'get kept')).toBe('1');

    // The Sentinels that lost their state still count as two of three.
    const last = await primaryNow();
    await pods.kill(last);
    await expect.poll(() => register('after-all'), WAIT).toBeDefined();
    expect(await register('before')).toBe(epoch);
  },
  TIMEOUT_MS,
);

it(
  'a Cluster is made by the Job, also in several attempts, and survives failovers and new addresses of all pods',
  async () => {
    await render('cluster', ...CLIENT_TLS);
    await pods.startAll();
    const readSlots = async () => {
      const nodes = await pods.ask(pods.names[1]!, 'cluster nodes');
      return [...nodes.matchAll(/,(\S+?)\.broomwagon\S* (\S+) .* connected ?(.*)$/gm)]
        .map(([, name, flags, slots]) => [name, flags!.includes('master'), slots])
        .toSorted();
    };
    // An interrupted Job has assigned only a part of the slots.
    await expect.poll(() => pods.ask(pods.names[0]!, 'ping').catch(() => ''), WAIT).toBe('PONG');
    await pods.ask(pods.names[0]!, 'cluster addslotsrange 0 5460');
    await pods.createCluster();
    await allReady();
    const made = await readSlots();
    expect(made.map(([, isPrimary, slots]) => [isPrimary, slots])).toEqual([
      [true, '0-5460'],
      [true, '5461-10921'],
      [true, '10922-16383'],
      [false, ''],
      [false, ''],
      [false, ''],
    ]);
    await pods.createCluster();
    expect(await readSlots()).toEqual(made);
    await expect.poll(() => replicasOfEach()).toEqual([1, 1, 1]);

    const pages = await startServices();
    const register = registration();
    const epoch = await register('before');
    expect(epoch).toBeDefined();
    const slot = Number(await pods.ask(pods.names[0]!, "cluster keyslot 'rollout:{p}'"));
    const owner = pods.names[Math.floor((slot * 3) / 16_384)]!;
    await pods.kill(owner);
    await expect.poll(() => register('after'), WAIT).toBeDefined();
    await pods.start(owner);
    await allReady();
    expect(await readRole(owner)).toBe('slave');
    await expect.poll(() => Promise.all(pages.map(fetchStatus)), WAIT).toEqual(pages.map(() => 200));

    await pods.ask(pods.names[0]!, '-c set kept{p} 1');
    await pods.killAll();
    await pods.startAll();
    await allReady();
    expect(await pods.ask(pods.names[0]!, '-c get kept{p}')).toBe('1');
    await expect.poll(() => register('all-restarted'), WAIT).toBeDefined();

    // A server without its volume is a stranger, and becomes a replica where one is missing.
    await pods.kill(owner);
    pods.loseVolume(owner);
    await pods.start(owner);
    await pods.createCluster();
    await allReady();
    expect(await readRole(owner)).toBe('slave');
    await expect.poll(() => replicasOfEach(), WAIT).toEqual([1, 1, 1]);
    expect(await pods.ask(pods.names[0]!, '-c get kept{p}')).toBe('1');
  },
  TIMEOUT_MS,
);

/** How many replicas that copy each primary of a Cluster has. */
async function replicasOfEach(): Promise<number[]> {
  const infos = await Promise.all(pods.names.map((name) => pods.ask(name, 'info replication')));
  return infos
    .filter((info) => info.includes('role:master'))
    .map((info) => Number(/connected_slaves:(\d+)/.exec(info)![1]));
}

it(
  'Sentinels take over the data of one Redis; a back-up is written into each volume, and they begin again',
  async () => {
    await render('single');
    await pods.startAll();
    await allReady();
    await pods.ask(pods.names[0]!, 'set before 1');
    await pods.killAll();
    await render('sentinel');
    await pods.startAll();
    await allReady();
    const [first, second] = pods.names as [string, string];
    expect(await pods.ask(second, 'get before')).toBe('1');
    const [container] = pods.containers;
    const copy = ['sh', '-c', 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli --user admin --rdb -'];
    const backup = await pods.execute(copy, container!, first);
    await pods.ask(first, 'set after 1');
    // A failover makes the last primary differ from the first primary of a new installation.
    await pods.kill(first);
    await expect.poll(() => primaryNow(), WAIT).not.toBe('');
    for (const name of pods.names.slice(1)) await pods.kill(name);
    for (const name of pods.names) await pods.execute(['sh', '/etc/redis/restore.sh'], container!, name, backup);
    await pods.startAll();
    await allReady();
    expect(await primaryNow()).toBe(first);
    for (const name of [first, second]) expect(await pods.ask(name, "keys '*'")).toBe('before');
  },
  TIMEOUT_MS,
);
