import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OTHER_TEST_CERTIFICATE, startNats, TEST_CERTIFICATE, TEST_KEY, type ServerHandle } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectNats, type NatsConfig } from './connection';
import { echoController, startEchoApp } from './transport/echo-app.fixture';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-nats-tls-'));
const certificateFile = join(folder, 'server.crt');
const keyFile = join(folder, 'server.key');
writeFileSync(certificateFile, TEST_CERTIFICATE);
writeFileSync(keyFile, TEST_KEY);
afterAll(() => rmSync(folder, { recursive: true }));

const files = `cert_file: "${certificateFile}", key_file: "${keyFile}"`;
const trusted = { ca: TEST_CERTIFICATE };

describe('NATS with TLS', () => {
  let server: ServerHandle;
  let strict: ServerHandle;
  let plain: ServerHandle;
  beforeAll(async () => {
    [server, strict, plain] = await Promise.all([
      startNats({ configuration: `tls { ${files} }` }),
      startNats({ configuration: `tls { ${files}, ca_file: "${certificateFile}", verify: true }` }),
      startNats(),
    ]);
  });
  afterAll(() => Promise.all([server?.stop(), strict?.stop(), plain?.stop()]));

  const toTlsUrl = ({ port }: ServerHandle) => `tls://localhost:${port}`;

  it.each<[string, () => NatsConfig]>([
    ['its CA', () => ({ url: toTlsUrl(server), tls: trusted })],
    [
      'another name for its address',
      () => ({ url: `tls://127.0.0.1:${server.port}`, tls: { ...trusted, servername: 'localhost' } }),
    ],
    [
      'a client certificate',
      () => ({ url: toTlsUrl(strict), tls: { ...trusted, cert: TEST_CERTIFICATE, key: TEST_KEY } }),
    ],
  ])('connects with %s', async (_, config) => {
    const connection = await connectNats(config());
    await connection.nats.flush();
    expect(
      (
        connection.nats as unknown as { protocol: { transport: { isEncrypted(): boolean } } }
      ).protocol.transport.isEncrypted(),
    ).toBe(true);
    await connection.close();
  });

  it.each<[string, () => NatsConfig, RegExp]>([
    ['a server without TLS', () => ({ url: toTlsUrl(plain), tls: trusted }), /does not support TLS/],
    [
      'a server without TLS, among others',
      () => ({ url: `nats://127.0.0.1:${plain.port},tls://127.0.0.1:1` }),
      /does not support TLS/,
    ],
    ['another CA', () => ({ url: toTlsUrl(server), tls: { ca: OTHER_TEST_CERTIFICATE } }), /NATS_TLS_CA/],
    ['no CA', () => ({ url: toTlsUrl(server) }), /NATS_TLS_CA/],
    [
      'another name',
      () => ({ url: toTlsUrl(server), tls: { ...trusted, servername: 'nats.example' } }),
      /NATS_TLS_SERVER_NAME/,
    ],
    // Without a certificate the server sends no reason.
    [
      'no client certificate',
      () => ({ url: toTlsUrl(strict), tls: trusted, startDeadlineMs: 500 }),
      /client certificate \(NATS_TLS_CERT/,
    ],
  ])('refuses %s at once, and names the setting', async (_, config, says) => {
    await expect(connectNats({ startDeadlineMs: 60_000, ...config() })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(says) as string,
    });
  });
});

it('names the settings when NATS requires credentials', async () => {
  const server = await startNats({ user: 'bw', password: 'right' });
  const url = `nats://127.0.0.1:${server.port}`;
  for (const login of [{}, { user: 'bw', password: 'wrong' }]) {
    await expect(connectNats({ url, ...login, startDeadlineMs: 60_000 })).rejects.toThrow(
      /NATS_USER and NATS_PASSWORD/,
    );
  }
  await server.stop();
});

it('does not start an app that may not subscribe to its subjects', async () => {
  const user = '{ user: bw, password: secret, permissions: { publish: ">", subscribe: "_INBOX.>" } }';
  const server = await startNats({ configuration: `authorization { users: [${user}] }` });
  const url = `nats://bw:secret@127.0.0.1:${server.port}`;
  await expect(startEchoApp(url, echoController('refused-spec'))).rejects.toThrow(
    /does not let the user bw subscribe to rollout.*: add it to the permissions/,
  );
  await server.stop();
});
