import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort, ProcessGroup, TEST_CERTIFICATE, TEST_KEY, type ManagedProcess } from '@broomwagon/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findServers } from '../../libs/testing/src/provision/find-servers';
import { toPod, rendered, type Pod } from './chart';
import type { KubernetesObject } from './kubernetes-client';

const APPS = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];
const TLS = ['--set', 'nats.tlsSecret=nats-tls,redis.tlsSecret=redis-tls'];
const CLIENT_TLS = [...TLS, '--set', 'nats.clientTlsSecret=services-tls,redis.clientTlsSecret=services-tls'];
/** Folders of the containers. */
const FOLDERS =
  /(?<=[ "=]|^)\/(?:etc\/(?:nats|redis|nats-tls|redis-tls|broomwagon\/nats|broomwagon\/redis)|data|tmp)\b/gm;

let folder: string;
let group: ProcessGroup;
let objects: KubernetesObject[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-servers-'));
  group = new ProcessGroup({ logFolder: join(folder, 'logs') });
  for (const path of ['etc/nats', 'etc/redis', 'data', 'tmp', 'jetstream']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
});
afterEach(async () => {
  await group.stopAll(5_000);
  rmSync(folder, { recursive: true });
});

const here = (text: string): string => text.replaceAll(FOLDERS, (path) => join(folder, path));
const find = (kind: string, name: string) =>
  objects.find((one) => one.kind === kind && one.metadata.name === `broomwagon-${name}`)!;
const variables = (name: string) => find('Secret', name)['stringData'] as Record<string, string>;

/** Writes the files of a ConfigMap to where its server reads them. */
function mount(map: KubernetesObject, path: string, change: (text: string) => string): void {
  for (const [name, text] of Object.entries(map.data!)) writeFileSync(join(folder, path, name), change(here(text)));
}

interface Projected {
  name: string;
  projected?: { sources: { secret: { items?: { key: string; path: string }[] } }[] };
}

/** Writes the certificates that the volumes of a pod have to where the pod mounts them. */
function mountCertificates({ spec }: Pod): void {
  const files: Record<string, string> = {
    'tls.crt': TEST_CERTIFICATE,
    'tls.key': TEST_KEY,
    'ca.crt': TEST_CERTIFICATE,
  };
  const all = Object.keys(files).map((key) => ({ key, path: key }));
  const mounts = spec.containers.flatMap(({ volumeMounts }) => volumeMounts);
  for (const { name, projected } of spec.volumes as Projected[]) {
    if (projected === undefined) continue;
    const path = here(mounts.find((one) => one.name === name)!.mountPath);
    mkdirSync(path, { recursive: true });
    for (const { key, path: file } of projected.sources.flatMap(({ secret }) => secret.items ?? all)) {
      writeFileSync(join(path, file), files[key]!);
    }
  }
}

async function findBinary(kind: 'nats' | 'redis') {
  const found = (await findServers([kind])).get(kind)!;
  if (found.source === 'docker') throw new Error(`no program of ${kind}`);
  return found.binary;
}

async function redisEnvironment(): Promise<Record<string, string | undefined>> {
  const { path, environment } = await findBinary('redis');
  return { ...environment, ...variables('passwords'), PATH: `${dirname(path)}:${process.env['PATH']}` };
}

/** Starts Redis as the chart does. */
async function startRedis(port: number): Promise<ManagedProcess> {
  mount(find('ConfigMap', 'redis'), 'etc/redis', (text) => text);
  const pod = toPod(find('StatefulSet', 'redis'))!;
  mountCertificates(pod);
  const [container] = pod.spec.containers;
  const given = container!.args!.join(' ').replace('--tls-port 6379', `--tls-port ${port}`).split(' ');
  const ports = given.includes('--tls-port') ? [] : ['--port', String(port)];
  const [shell, ...settings] = [...container!.command!, ...given].map(here);
  return group.start({
    name: 'redis',
    command: [shell!, ...settings, ...ports],
    environment: await redisEnvironment(),
    ready: () => succeeds(redisCli(port, getReadinessCommand(pod))),
  });
}

/** Starts NATS as the chart does. */
async function startNats(port: number, httpPort: number): Promise<void> {
  mount(find('ConfigMap', 'nats'), 'etc/nats', (text) => text.replace('http_port: 8222', `http_port: ${httpPort}`));
  mountCertificates(toPod(find('StatefulSet', 'nats'))!);
  const nats = await findBinary('nats');
  await group.start({
    name: 'nats',
    command: [nats.path, '--config', join(folder, 'etc/nats/nats.conf'), '--port', String(port)],
    environment: { ...nats.environment, ...variables('passwords'), POD_NAME: 'broomwagon-nats-0' },
    ready: `http://127.0.0.1:${httpPort}/healthz`,
  });
}

const getReadinessCommand = (pod: Pod): string => pod.spec.containers[0]!.readinessProbe!.exec!.command[2]!;

const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

/** Output of a command in the container of Redis, with redis-cli on another port; fails with its complaint. */
async function redisCli(port: number, command: string, input: Buffer = Buffer.alloc(0)): Promise<Buffer> {
  const env = { ...process.env, ...(await redisEnvironment()) } as NodeJS.ProcessEnv;
  const script = here(command).replace('redis-cli', `redis-cli -p ${port}`);
  return new Promise((resolve, reject) => {
    const options = { env, encoding: 'buffer', timeout: 30_000 } as const;
    const child = execFile('sh', ['-c', script], options, (error, output, complaint) =>
      error === null ? resolve(output) : reject(new Error(`${error.message} ${complaint.toString()}`)),
    );
    child.stdin!.on('error', () => undefined);
    child.stdin!.end(input);
  });
}

/** Connects in a separate process: a refused connection leaves errors behind that nobody can catch. */
function canConnect(options: object): Promise<boolean> {
  const program = `require('nats').connect(${JSON.stringify(options)}).then((client) => client.close())`;
  return new Promise((resolve) => execFile(process.execPath, ['-e', program], (error) => resolve(error === null)));
}

it.each([
  ['without TLS', []],
  ['with TLS', TLS],
  ['with client certificates', CLIENT_TLS],
])('starts NATS and Redis with the files of the chart, and the services with its Secrets, %s', async (_, options) => {
  objects = await rendered('broomwagon', ...options);
  const [natsPort, natsHttpPort, redisPort] = [await freePort(), await freePort(), await freePort()];
  await startNats(natsPort, natsHttpPort);
  await startRedis(redisPort);

  for (const app of APPS) {
    mountCertificates(toPod(find('Deployment', app))!);
    const { REDIS_URL, ...own } = variables(app);
    const port = await freePort();
    const settings = Object.entries(find('ConfigMap', app).data!).map(([name, text]) => [name, here(text)]);
    const { NATS_URL, ...others } = Object.fromEntries(settings) as Record<string, string>;
    await group.start({
      name: app,
      app,
      environment: {
        ...others,
        ...own,
        NATS_URL: NATS_URL!.replace('broomwagon-nats:4222', `localhost:${natsPort}`),
        REDIS_URL: REDIS_URL!.replace('broomwagon-redis:6379', `localhost:${redisPort}`),
        HTTP_PORT: String(port),
      },
      ready: `http://127.0.0.1:${port}/readyz`,
    });
  }
  expect(group.list().filter(({ running }) => running)).toHaveLength(APPS.length + 2);

  const { NATS_USER, NATS_PASSWORD, NATS_INBOX_PREFIX } = variables('worker');
  const login = { user: NATS_USER, pass: NATS_PASSWORD, inboxPrefix: NATS_INBOX_PREFIX, reconnect: false };
  const tls = options.length > 0 ? { ca: TEST_CERTIFICATE } : undefined;
  const connects = await canConnect({ servers: `localhost:${natsPort}`, ...login, tls });
  const readiness = getReadinessCommand(toPod(find('StatefulSet', 'redis'))!);
  const pings = await succeeds(redisCli(redisPort, readiness.replace(/ --cert \S+ --key \S+/, '')));
  const needsNone = options !== CLIENT_TLS;
  expect([connects, pings]).toEqual([needsNone, needsNone]);
});

it('lets programs reach NATS and Redis of the chart by IPv6', async () => {
  objects = await rendered('broomwagon', '-f', 'test/kubernetes/values/ipv6.yaml', '--set', 'redis.mode=single');
  const [natsPort, natsHttpPort, redisPort] = [await freePort(), await freePort(), await freePort()];
  await startNats(natsPort, natsHttpPort);
  await startRedis(redisPort);
  const { NATS_USER, NATS_PASSWORD, NATS_INBOX_PREFIX } = variables('worker');
  const login = { user: NATS_USER, pass: NATS_PASSWORD, inboxPrefix: NATS_INBOX_PREFIX, reconnect: false };
  expect(await canConnect({ servers: `[::1]:${natsPort}`, ...login })).toBe(true);
  expect((await fetch(`http://[::1]:${natsHttpPort}/healthz`)).status).toBe(200);
  const ping = 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli -h ::1 --user admin ping';
  expect(String(await redisCli(redisPort, ping))).toBe('PONG\n');
  expect(find('ConfigMap', 'worker').data!['HTTP_HOST']).toBe('::');
});

it('copies Redis with the script of the CronJob, and removes the oldest copies', async () => {
  objects = await rendered('broomwagon', '--set', 'redis.backup.enabled=true,redis.backup.keep=2');
  const port = await freePort();
  const first = await startRedis(port);
  mount(find('ConfigMap', 'redis'), 'etc/redis', (text) => text.replace('redis-cli -h', `redis-cli -p ${port} -h`));
  await redisCli(port, 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli --user admin set saved 1');
  const backups = join(folder, 'data/backups');
  mkdirSync(backups);
  const names = ['redis-20260101T000000Z-a.rdb', 'redis-20260102T000000Z-a.rdb', 'redis-20260103T000000Z-a.rdb'];
  for (const name of [...names, 'redis-20260104T000000Z-a.rdb.new']) writeFileSync(join(backups, name), '');

  const [container] = toPod(find('CronJob', 'backup'))!.spec.containers;
  const copy = (...args: string[]) =>
    redisCli(
      port,
      ['REDIS_HOSTS="127.0.0.1 server.invalid" REDIS_CLI_TLS=', ...args]
        .join(' ')
        .replace('/backup ', '/data/backups '),
    );
  await expect(copy(...container!.command!, '2', '2')).rejects.toThrow('copied 1 of 2 primaries');
  expect(readdirSync(backups)).toEqual(expect.arrayContaining(names));
  await copy(...container!.command!, ...container!.args!);
  const kept = readdirSync(backups).toSorted();
  expect(kept.filter((name) => name.endsWith('.new') || names.slice(0, 2).includes(name))).toEqual([]);
  expect(new Set(kept.map((name) => name.split('-')[1])).size).toBe(2);
  await first.stop();

  const restored = readFileSync(join(backups, kept.at(-1)!));
  expect(String(await redisCli(port, 'sh /etc/redis/restore.sh /data', restored))).toBe('Restored. Start Redis.\n');
  await startRedis(port);
  const get = 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli --user admin get saved';
  expect(String(await redisCli(port, get))).toBe('1\n');
});

interface NatsState {
  cluster: object;
  routes: { remote_id: string }[];
}

it('joins the NATS servers of the chart to one cluster with JetStream, over encrypted connections', async () => {
  objects = await rendered('broomwagon', '--set', 'nats.replicas=3,nats.tlsSecret=nats-tls');
  mountCertificates(toPod(find('StatefulSet', 'nats'))!);
  const pods = await Promise.all(
    [0, 1, 2].map(async (replica) => {
      const [port, httpPort, clusterPort] = [await freePort(), await freePort(), await freePort()];
      return { name: `broomwagon-nats-${replica}`, port, httpPort, clusterPort };
    }),
  );
  const { NATS_ROUTES, ...passwords } = variables('passwords');
  let routes = NATS_ROUTES!;
  for (const { name, clusterPort } of pods) {
    routes = routes.replace(`${name}.broomwagon-nats-servers.default.svc:6222`, `localhost:${clusterPort}`);
  }
  const nats = await findBinary('nats');
  const start = ({ name, port, httpPort, clusterPort }: (typeof pods)[number]) => {
    mkdirSync(join(folder, name));
    mount(find('ConfigMap', 'nats'), name, (text) =>
      text
        .replaceAll(join(folder, 'data'), join(folder, name, 'data'))
        .replace(join(folder, 'tmp'), join(folder, name))
        .replace('http_port: 8222', `http_port: ${httpPort}`)
        .replace('port: 6222', `listen: "127.0.0.1:${clusterPort}"`),
    );
    return group.start({
      name,
      command: [nats.path, '--config', join(folder, name, 'nats.conf'), '--port', String(port)],
      environment: { ...nats.environment, ...passwords, NATS_ROUTES: routes, POD_NAME: name },
      ready: `http://127.0.0.1:${httpPort}/healthz`,
    });
  };
  await Promise.all(pods.map(start));
  for (const { httpPort } of pods) {
    const ask = async (page: string) =>
      (await (await fetch(`http://127.0.0.1:${httpPort}/${page}`)).json()) as NatsState;
    expect((await ask('varz')).cluster).toMatchObject({ tls_required: true, tls_verify: true });
    const others = async () => new Set((await ask('routez')).routes.map(({ remote_id }) => remote_id)).size;
    await expect.poll(others).toBe(2);
  }
});

it('restores a back-up with the script of the Pod that redis.restore makes', async () => {
  objects = await rendered('broomwagon', '--set', 'redis.restore=true');
  const port = await freePort();
  const cli = 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD redis-cli --user admin';
  const keys = async () =>
    String(await redisCli(port, `${cli} keys '*'`))
      .split(/\s+/)
      .filter(Boolean);
  const first = await startRedis(port);
  await redisCli(port, `${cli} set before 1`);
  const backup = await redisCli(port, `${cli} --rdb -`);
  await redisCli(port, `${cli} set after 1`);
  await first.stop();

  const { containers, volumes } = toPod(find('Pod', 'redis-restore-0'))!.spec;
  expect(containers[0]!.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/data', '/etc/redis']);
  expect(volumes).toContainEqual({ name: 'data', persistentVolumeClaim: { claimName: 'data-broomwagon-redis-0' } });
  expect(find('StatefulSet', 'redis').spec).toMatchObject({ replicas: 0 });
  const restore = (input: Buffer) => redisCli(port, 'sh /etc/redis/restore.sh /data', input);
  await expect(restore(Buffer.from('no snapshot'))).rejects.toThrow('nothing was changed');
  const second = await startRedis(port);
  expect((await keys()).toSorted()).toEqual(['after', 'before']);
  await second.stop();

  expect(String(await restore(backup))).toBe('Restored. Start Redis.\n');
  await expect(restore(backup.subarray(0, 40))).rejects.toThrow('nothing was changed');
  const third = await startRedis(port);
  expect(await keys()).toEqual(['before']);
  await third.stop();

  // A second restore keeps the data from before the first restore.
  await restore(backup);
  const data = readdirSync(join(folder, 'data'));
  expect(data).not.toContain('restore.new');
  const kept = data.filter((name) => name.startsWith('before-restore.'));
  expect(kept).toHaveLength(2);
  const files = kept.flatMap((name) => {
    const path = join(folder, 'data', name, 'appendonlydir');
    return readdirSync(path).map((file) => readFileSync(join(path, file), 'latin1'));
  });
  expect(files.join('')).toContain('after');
});
