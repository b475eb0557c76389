import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  freePort,
  OTHER_TEST_CERTIFICATE,
  startRedis,
  TEST_CERTIFICATE,
  TEST_KEY,
  type ServerHandle,
} from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connectRedis, type RedisConnectionOptions } from './redis';
import { checkRedisAccess } from './redis-access';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-redis-tls-'));
const certificateFile = join(folder, 'server.crt');
const keyFile = join(folder, 'server.key');
writeFileSync(certificateFile, TEST_CERTIFICATE);
writeFileSync(keyFile, TEST_KEY);
afterAll(() => rmSync(folder, { recursive: true }));

/** Connects and checks the access as a service does at its start. */
async function start(options: RedisConnectionOptions): Promise<string> {
  const redis = connectRedis(options);
  try {
    await checkRedisAccess(redis, 'rollout');
    return await redis.ping();
  } finally {
    redis.disconnect();
  }
}

function tlsLines(tlsPort: number, clients: 'yes' | 'no', ...more: string[]): string {
  return [
    `tls-port ${tlsPort}`,
    `tls-cert-file "${certificateFile}"`,
    `tls-key-file "${keyFile}"`,
    `tls-ca-cert-file "${certificateFile}"`,
    `tls-auth-clients ${clients}`,
    ...more,
  ].join('\n');
}

describe.skipIf(!inject('redisHasTls'))('Redis with TLS', () => {
  const servers: ServerHandle[] = [];
  const ports = { open: 0, strict: 0 };
  let plainPort: number;
  beforeAll(async () => {
    for (const [name, clients] of [
      ['open', 'no'],
      ['strict', 'yes'],
    ] as const) {
      const tlsPort = await freePort();
      servers.push(await startRedis({ configuration: tlsLines(tlsPort, clients) }));
      ports[name] = tlsPort;
    }
    plainPort = servers[0]!.port;
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  const tls = { ca: TEST_CERTIFICATE };
  const at = (port: number) => `rediss://127.0.0.1:${port}`;

  it('connects with its CA, a server name and a client certificate', async () => {
    expect(await start({ url: at(ports.open), tls })).toBe('PONG');
    expect(await start({ url: at(ports.open), tls: { ...tls, servername: 'localhost' } })).toBe('PONG');
    expect(await start({ url: at(ports.strict), tls: { ...tls, cert: TEST_CERTIFICATE, key: TEST_KEY } })).toBe('PONG');
  });

  it('reads certificates again for each connection', async () => {
    const caFile = join(folder, 'ca.crt');
    writeFileSync(caFile, TEST_CERTIFICATE);
    const renewed = {
      get ca() {
        return readFileSync(caFile, 'utf8');
      },
    };
    const redis = connectRedis({ url: at(ports.open), tls: renewed });
    const refusals: Error[] = [];
    redis.on('error', (error) => refusals.push(error));
    expect(await redis.ping()).toBe('PONG');
    writeFileSync(caFile, OTHER_TEST_CERTIFICATE);
    redis.disconnect(true);
    await expect.poll(() => refusals.map(({ message }) => message).join()).toMatch(/certificate/);
    writeFileSync(caFile, TEST_CERTIFICATE);
    await expect.poll(() => redis.ping().catch(String)).toBe('PONG');
    redis.disconnect();
  });

  it('connects to a Cluster, and otherwise names the setting to change', async () => {
    const tlsPort = await freePort();
    const clusterLines = ['cluster-enabled yes', 'cluster-announce-ip 127.0.0.1', `cluster-port ${await freePort()}`];
    const node = await startRedis({ configuration: tlsLines(tlsPort, 'no', 'tls-cluster yes', ...clusterLines) });
    servers.push(node);
    const plain = connectRedis({ url: node.url });
    await plain.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await expect.poll(() => plain.call('CLUSTER', 'INFO')).toContain('cluster_state:ok');
    plain.disconnect();
    const url = `rediss+cluster://localhost:${tlsPort}`;
    expect(await start({ url, tls })).toBe('PONG');
    await expect(start({ url })).rejects.toThrow(/REDIS_TLS_CA/);
  });

  // The cases run concurrently, because each waits for the deadline of its connection.
  it.concurrent.each<[string, () => RedisConnectionOptions, RegExp]>([
    ['a server without TLS', () => ({ url: at(plainPort), tls }), /does not support TLS/],
    ['another CA', () => ({ url: at(ports.open), tls: { ca: OTHER_TEST_CERTIFICATE } }), /REDIS_TLS_CA/],
    ['no CA', () => ({ url: at(ports.open) }), /REDIS_TLS_CA/],
    [
      'another name',
      () => ({ url: at(ports.open), tls: { ...tls, servername: 'redis.example' } }),
      /REDIS_TLS_SERVER_NAME/,
    ],
    ['no client certificate', () => ({ url: at(ports.strict), tls }), /REDIS_TLS_CERT/],
  ])('refuses to start with %s, and names the setting to change', async (_, options, says) => {
    await expect(start(options())).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(says) as string,
    });
  });
});

describe('Redis with passwords', () => {
  let server: ServerHandle;
  beforeAll(async () => {
    server = await startRedis({
      password: 'right',
      configuration: 'user reader on >reader ~other:* +@all\nuser writer on >writer ~rollout:* +@all -fcall',
    });
  });
  afterAll(() => server.stop());

  it.each([
    ['no password', '', /requires a password.*REDIS_URL/],
    ['a wrong password', ':wrong@', /refuses the user and password/],
    ['a user without our keys', 'reader:reader@', /REDIS_KEY_PREFIX/],
    ['a user that may not run functions', 'writer:writer@', /may not run functions/],
  ])('refuses to start with %s, and names the setting to change', async (_, login, says) => {
    const refused = start({ url: `redis://${login}127.0.0.1:${server.port}` });
    await expect(refused).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(says) as string,
    });
  });

  it('starts with the right password, and with a Redis that is not up yet', async () => {
    expect(await start({ url: server.url })).toBe('PONG');
    const redis = connectRedis({ url: `redis://127.0.0.1:${await freePort()}` });
    await checkRedisAccess(redis, 'rollout');
    redis.disconnect();
  });
});

it('refuses to start with a Redis that has no functions, and names the versions that have them', async () => {
  // A Redis before 7.0 answers in the same way.
  const old = await startRedis({
    configuration: ['FUNCTION', 'FCALL'].map((name) => `rename-command ${name} ""`).join('\n'),
  });
  await expect(start({ url: old.url })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/no Redis Functions; Redis 7.0 or later, or Valkey/) as string,
  });
  await old.stop();
});
