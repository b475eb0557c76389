import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort, ProcessGroup, TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findServers } from '../../libs/testing/src/provision/find-servers';
import { podOf, rendered } from './chart';
import type { KubernetesObject } from './kubernetes-client';

const APPS = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];
const TLS = ['--set', 'nats.tlsSecret=nats-tls,redis.tlsSecret=redis-tls'];
/** Folders of the containers. */
const FOLDERS = /(?<=[ "=])\/(?:etc\/(?:nats|redis|nats-tls|redis-tls|broomwagon\/nats|broomwagon\/redis)|data|tmp)\b/g;

let folder: string;
let group: ProcessGroup;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-servers-'));
  group = new ProcessGroup({ logFolder: join(folder, 'logs') });
});
afterEach(async () => {
  await group.stopAll(5_000);
  rmSync(folder, { recursive: true });
});

const here = (text: string): string => text.replaceAll(FOLDERS, (path) => join(folder, path));

/** Writes the files of a ConfigMap to where its server reads them. */
function mount(map: KubernetesObject, path: string, change: (text: string) => string): void {
  for (const [name, text] of Object.entries(map.data!)) writeFileSync(join(folder, path, name), change(here(text)));
}

it.each([
  ['without TLS', []],
  ['with TLS', TLS],
])('starts NATS and Redis with the files of the chart, and the services with its Secrets, %s', async (_, options) => {
  const objects = await rendered('broomwagon', ...options);
  const find = (kind: string, name: string) =>
    objects.find((one) => one.kind === kind && one.metadata.name === `broomwagon-${name}`)!;
  const variables = (name: string) => find('Secret', name)['stringData'] as Record<string, string>;
  for (const path of ['etc/nats', 'etc/redis', 'data', 'tmp', 'jetstream']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  for (const server of ['nats', 'redis']) {
    const files = { 'tls.crt': TEST_CERTIFICATE, 'tls.key': TEST_KEY, 'ca.crt': TEST_CERTIFICATE };
    for (const path of [`etc/${server}-tls`, `etc/broomwagon/${server}`]) {
      mkdirSync(join(folder, path), { recursive: true });
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, path, name), text);
    }
  }
  const [natsPort, natsHttpPort, redisPort] = [await freePort(), await freePort(), await freePort()];
  const servers = await findServers(['nats', 'redis']);
  const binaryOf = (kind: 'nats' | 'redis') => {
    const found = servers.get(kind)!;
    if (found.source === 'docker') throw new Error(`no program of ${kind}`);
    return found.binary;
  };

  mount(find('ConfigMap', 'nats'), 'etc/nats', (text) => text.replace('http_port: 8222', `http_port: ${natsHttpPort}`));
  const nats = binaryOf('nats');
  await group.start({
    name: 'nats',
    command: [nats.path, '--config', join(folder, 'etc/nats/nats.conf'), '--port', String(natsPort)],
    environment: { ...nats.environment, ...variables('passwords'), POD_NAME: 'broomwagon-nats-0' },
    ready: `http://127.0.0.1:${natsHttpPort}/healthz`,
  });

  mount(find('ConfigMap', 'redis'), 'etc/redis', (text) => text);
  const [container] = podOf(find('StatefulSet', 'redis'))!.spec.containers;
  const [shell, script] = container!.command!;
  const redis = binaryOf('redis');
  const ports = options.length > 0 ? ['--tls-port', String(redisPort)] : ['--port', String(redisPort)];
  const given = container!.args!.join(' ').replace('--tls-port 6379 ', '').split(' ');
  // A path is found after a space.
  const [program, ...settings] = [script!, ...given].map((text) => here(` ${text}`).trim());
  await group.start({
    name: 'redis',
    command: [shell!, program!, ...settings, ...ports],
    environment: {
      ...redis.environment,
      ...variables('passwords'),
      PATH: `${dirname(redis.path)}:${process.env['PATH']}`,
    },
  });

  for (const app of APPS) {
    const { REDIS_URL, ...own } = variables(app);
    const port = await freePort();
    const settings = Object.entries(find('ConfigMap', app).data!).map(([name, text]) => [
      name,
      here(` ${text}`).trim(),
    ]);
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
});
