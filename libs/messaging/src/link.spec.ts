import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import {
  buildNatsAccount,
  FaultyLink,
  startNats,
  TEST_CERTIFICATE,
  TEST_KEY,
  type LinkFault,
  type ServerHandle,
} from '@broomwagon/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { connectNats, type NatsConfig } from './connection';
import { ReconnectPace } from './reconnect-pace';
import { echoController, startEchoApp } from './transport/echo-app.fixture';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-link-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Lines of the log that name the connection to NATS, by level. */
let lines: { level: string; text: string }[];
beforeEach(() => {
  lines = [];
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => {
      const text = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
      if (/NATS at/.test(text)) lines.push({ level, text });
    });
  }
});
afterEach(() => vi.restoreAllMocks());
const countLines = (pattern: RegExp): number => lines.filter(({ text }) => pattern.test(text)).length;

describe('a link to NATS', () => {
  let server: ServerHandle | undefined;
  let link: FaultyLink | undefined;
  afterEach(async () => {
    await link?.stop();
    await server?.stop();
    [link, server] = [undefined, undefined];
  });
  const connectByLink = async (config: Partial<NatsConfig> = {}) => {
    link = await FaultyLink.start(server!.port);
    return connectNats({ url: `nats://127.0.0.1:${link.port}`, reconnectWaitMs: 20, explainEveryMs: 200, ...config });
  };

  it.each(['out', 'back', undefined] as const)(
    'is cut and dialed again when existing connections drop bytes, direction: %s',
    async (direction) => {
      server = await startNats();
      const connection = await connectByLink({ silenceMs: 600 });
      link!.begin({ kind: 'black-hole', direction });
      await expect.poll(() => countLines(/is lost/)).toBe(1);
      await expect.poll(() => countLines(/is restored/)).toBe(1);
      expect(lines[0]!.text).toContain('did not answer pings');
      expect(connection.isConnected()).toBe(true);
      expect(countLines(/./)).toBe(2);
      await connection.close();
    },
  );

  it('is restored although each server needs three seconds to answer a new connection', async () => {
    server = await startNats();
    const connection = await connectByLink();
    link!.greetingDelayMs = 3_000;
    link!.cut();
    await expect.poll(() => countLines(/is restored/)).toBe(1);
    await connection.close();
  });

  it.each<[string, LinkFault]>([
    ['refuses connections', { kind: 'refuse' }],
    ['gets no bytes of connections', { kind: 'black-hole', direction: 'out', hitsNew: true }],
    ['sends no bytes to connections', { kind: 'black-hole', direction: 'back', hitsNew: true }],
  ])(
    'is restored as soon as a server that %s takes them again, though the next dial is an hour away',
    async (_, fault) => {
      server = await startNats();
      const connection = await connectByLink({ reconnectWaitMs: 3_600_000, explainEveryMs: 3_600_000 });
      const { accepted } = link!;
      link!.begin(fault);
      link!.cut();
      // A dial, the explanation of the loss, and a probe.
      await expect.poll(() => link!.accepted).toBeGreaterThan(accepted + 2);
      expect(connection.isConnected()).toBe(false);
      link!.end();
      await expect.poll(() => countLines(/is restored/)).toBe(1);
      await connection.close();
    },
  );

  it('is dialed again as soon as the connection of a dial is closed, though a dial may take an hour', async () => {
    server = await startNats();
    const connection = await connectByLink();
    vi.spyOn(ReconnectPace.prototype, 'dialTimeoutMs').mockReturnValue(3_600_000);
    const { accepted } = link!;
    link!.begin({ kind: 'black-hole', direction: 'out', hitsNew: true });
    link!.cut();
    await expect.poll(() => link!.accepted).toBeGreaterThan(accepted + 2);
    expect(connection.isConnected()).toBe(false);
    link!.end();
    await expect.poll(() => countLines(/is restored/)).toBe(1);
    await connection.close();
  });

  it('is restored as soon as a server has room for another connection, though the next dial is an hour away', async () => {
    server = await startNats({ configuration: 'max_connections: 2' });
    const connection = await connectByLink({ reconnectWaitMs: 3_600_000, explainEveryMs: 3_600_000 });
    link!.begin({ kind: 'refuse' });
    const others = [];
    for (let count = 0; count < 2; count++)
      others.push(await connectNats({ url: server.url, startDeadlineMs: 20_000 }));
    const { accepted } = link!;
    link!.end();
    await expect.poll(() => link!.accepted).toBeGreaterThan(accepted + 1);
    expect(connection.isConnected()).toBe(false);
    // Room for the probe beside the connection.
    for (const other of others) await other.close();
    await expect.poll(() => connection.isConnected()).toBe(true);
    await connection.close();
  });

  it('logs once in each interval that the server has no room for another connection', async () => {
    server = await startNats({ configuration: 'max_connections: 2' });
    const explainEveryMs = 2_000;
    const connection = await connectByLink({ explainEveryMs });
    const others = [await connectNats({ url: server.url })];
    const lostAtMs = performance.now();
    link!.begin({ kind: 'refuse' });
    others.push(await connectNats({ url: server.url, startDeadlineMs: 20_000 }));
    link!.end();
    await expect.poll(() => countLines(/maximum connections exceeded/)).toBeGreaterThan(0);
    expect(connection.problem()).toMatch(/maximum connections exceeded/);
    const { accepted } = link!;
    await expect.poll(() => link!.accepted).toBeGreaterThan(accepted + 2);
    const intervals = (performance.now() - lostAtMs) / explainEveryMs;
    expect(countLines(/maximum connections exceeded/)).toBeLessThanOrEqual(1 + intervals);
    await others[1]!.close();
    await expect.poll(() => connection.problem()).toBeUndefined();
    await Promise.all([connection.close(), others[0]!.close()]);
  });

  it('asks for a restart when credentials of the environment stay refused', async () => {
    server = await startNats({ user: 'service', password: 'before' });
    const { port } = server;
    const connection = await connectByLink({ user: 'service', password: 'before' });
    await server.stop();
    server = await startNats({ user: 'service', password: 'after', port });
    await expect(connection.needsRestart).resolves.toMatchObject({ code: 'UNAVAILABLE' });
    expect(connection.problem()).toMatch(/NATS_USER and NATS_PASSWORD/);
    await connection.close();
  });

  it('reads certificates again for each connection', async () => {
    const files = { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key') };
    writeFileSync(files.certificate, TEST_CERTIFICATE);
    writeFileSync(files.key, TEST_KEY);
    server = await startNats({ configuration: `tls { cert_file: "${files.certificate}", key_file: "${files.key}" }` });
    let reads = 0;
    const tls = {
      get ca() {
        reads += 1;
        return TEST_CERTIFICATE;
      },
    };
    const connection = await connectNats({ url: `tls://localhost:${server.port}`, tls, reconnectWaitMs: 20 });
    const before = reads;
    await server.kill();
    await server.restart();
    await expect.poll(() => countLines(/is restored/)).toBe(1);
    expect(reads).toBeGreaterThan(before);
    await connection.close();
  });

  it('reads a renewed credentials file when its JWT has ended', async () => {
    const { configuration, formatCredentials } = buildNatsAccount();
    server = await startNats({ configuration });
    const credsFile = join(folder, 'service.creds');
    writeFileSync(credsFile, formatCredentials(3));
    const connection = await connectNats({ url: server.url, credsFile, reconnectWaitMs: 20, explainEveryMs: 100 });
    await expect.poll(() => countLines(/refuses the connection.*NATS_CREDS/)).toBeGreaterThan(0);
    expect(connection.isConnected()).toBe(false);
    writeFileSync(credsFile, 'half of a file');
    writeFileSync(credsFile, formatCredentials(3_600));
    await expect.poll(() => connection.isConnected()).toBe(true);
    await connection.close();
  });
});

describe('a JetStream stream over the subjects of the protocol', () => {
  it('does not answer requests in place of the service, and is named', async () => {
    const server = await startNats();
    const app = await startEchoApp(server.url, echoController('foreign-spec'));
    const manager = await app.client.connection.nats.jetstreamManager();
    await manager.streams.add({ name: 'EVERYTHING', subjects: ['rollout.>'] });
    try {
      for (const value of [1, 2, 3]) {
        const reply = app.client.request('rollout.v1.foreign.foreign-spec.echo', { value }, { timeoutMs: 30_000 });
        await expect(reply).resolves.toMatchObject({ value });
      }
      await expect
        .poll(async () => {
          await app.client.request('rollout.v1.foreign.foreign-spec.echo', { value: 4 }, { timeoutMs: 30_000 });
          return app.client.connection.foreignReplies.warning();
        })
        .toContain('EVERYTHING');
    } finally {
      await app.close();
      await server.stop();
    }
  });
});
