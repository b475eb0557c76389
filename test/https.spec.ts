import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  flushPrefix,
  ProcessGroup,
  TEST_CERTIFICATE,
  TEST_KEY,
  testNatsUrl,
  testPool,
  testRedisUrl,
} from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';

const { pool, keyPrefix } = testPool();
let folder: string;
let group: ProcessGroup;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-https-'));
  writeFileSync(join(folder, 'tls.crt'), TEST_CERTIFICATE);
  writeFileSync(join(folder, 'tls.key'), TEST_KEY);
  group = new ProcessGroup({ logFolder: join(folder, 'logs') });
});
afterAll(async () => {
  await group.stopAll(5_000);
  rmSync(folder, { recursive: true });
  await flushPrefix(testRedisUrl(), keyPrefix);
});

/** Starts a service, waits until it answers, and returns its port. */
async function start(app: string, settings: Record<string, string>): Promise<number> {
  const file = join(folder, `${app}.json`);
  const readPort = () => (JSON.parse(readFileSync(file, 'utf8')) as { port: number }).port;
  const environment = {
    NATS_URL: testNatsUrl(),
    REDIS_URL: testRedisUrl(),
    REDIS_KEY_PREFIX: keyPrefix.slice(0, -1),
    POOL: pool,
    POOLS: pool,
    HTTP_PORT: '0',
    READY_FILE: file,
    ...settings,
  };
  const ready = async () => (await get('127.0.0.1', readPort(), '/livez')) === 200;
  await group.start({ name: app, app, environment, ready, readyTimeoutMs: 120_000 });
  return readPort();
}

/** Status of a request over TLS. */
function get(host: string, port: number, path: string): Promise<number> {
  const options = { host, port, path, ca: TEST_CERTIFICATE, servername: 'localhost' };
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    sent.on('error', reject).end();
  });
}

it.each([
  ['gateway', '/v1/models'],
  ['load-balancer', '/metrics'],
])(
  '%s speaks HTTPS only, also on IPv6, with HTTP_TLS_CERT',
  async (app, path) => {
    const tls = { HTTP_TLS_CERT: join(folder, 'tls.crt'), HTTP_TLS_KEY: join(folder, 'tls.key') };
    const port = await start(app, { ...tls, HTTP_HOST: '::' });
    expect(await get('::1', port, '/livez')).toBe(200);
    // The gateway answers 401 without a key.
    expect(await get('127.0.0.1', port, path)).toBe(app === 'gateway' ? 401 : 200);
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
  },
  150_000,
);
