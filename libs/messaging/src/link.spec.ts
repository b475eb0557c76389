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
import { afterAll, beforeAll, describe, expect, it, type TestContext, vi } from 'vitest';
import { connectNats, type MessagingConnection, type NatsConfig } from './connection';
import { ReconnectPace } from './reconnect-pace';
import { echoController, startEchoApp } from './transport/echo-app.fixture';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-link-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Lines of the log that name a connection to NATS. */
const lines: string[] = [];
beforeAll(() => {
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => {
      const text = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
      if (/NATS at/.test(text)) lines.push(text);
    });
  }
});
afterAll(() => vi.restoreAllMocks());
/** Number of lines about the connection to this port that match. */
const countLines = (port: number, pattern: RegExp): number =>
  lines.filter((text) => text.includes(`:${port}`) && pattern.test(text)).length;

type Context = Pick<TestContext, 'onTestFinished'>;

/** A server that ends with the test. */
async function startServer({ onTestFinished }: Context, options?: Parameters<typeof startNats>[0]) {
  const server = await startNats(options);
  onTestFinished(() => server.stop());
  return server;
}

/** A faulty link to a server and a connection over the link, which end with the test. */
async function connectByLink(
  { onTestFinished }: Context,
  server: ServerHandle,
  config: Partial<NatsConfig> = {},
): Promise<{ link: FaultyLink; connection: MessagingConnection }> {
  const link = await FaultyLink.start(server.port);
  onTestFinished(() => link.stop());
  const url = `nats://127.0.0.1:${link.port}`;
  const connection = await connectNats({ url, reconnectWaitMs: 20, explainEveryMs: 200, ...config });
  onTestFinished(() => connection.close());
  return { link, connection };
}

// The tests run side by side, because each waits seconds for the intervals of dials, probes and explanations.
describe.concurrent('a link to NATS', () => {
  it.for(['out', 'back', undefined] as const)(
    'is cut and dialed again when existing connections drop bytes, direction: %s',
    async (direction, context) => {
      const { expect } = context;
      const { link, connection } = await connectByLink(context, await startServer(context), { silenceMs: 600 });
      link.begin({ kind: 'black-hole', direction });
      await expect.poll(() => countLines(link.port, /Outage begins.*did not answer pings/)).toBe(1);
      await expect.poll(() => countLines(link.port, /works again/)).toBe(1);
      expect(connection.isConnected()).toBe(true);
      expect(countLines(link.port, /./)).toBe(2);
    },
  );

  it('works again although each server needs three seconds to answer a new connection', async (context) => {
    const { link } = await connectByLink(context, await startServer(context));
    link.greetingDelayMs = 3_000;
    link.cut();
    await context.expect.poll(() => countLines(link.port, /works again/)).toBe(1);
  });

  it.for<[string, LinkFault]>([
    ['refuses connections', { kind: 'refuse' }],
    ['gets no bytes of connections', { kind: 'black-hole', direction: 'out', hitsNew: true }],
    ['sends no bytes to connections', { kind: 'black-hole', direction: 'back', hitsNew: true }],
  ])(
    'works again as soon as a server that %s takes them again, though the next dial is an hour away',
    async ([, fault], context) => {
      const { expect } = context;
      const hourly = { reconnectWaitMs: 3_600_000, explainEveryMs: 3_600_000 };
      const { link, connection } = await connectByLink(context, await startServer(context), hourly);
      const { accepted } = link;
      link.begin(fault);
      link.cut();
      // A dial, the explanation of the loss, and a probe.
      await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 2);
      expect(connection.isConnected()).toBe(false);
      link.end();
      await expect.poll(() => countLines(link.port, /works again/)).toBe(1);
    },
  );

  it('works again as soon as a server has room for another connection, though the next dial is an hour away', async (context) => {
    const { expect, onTestFinished } = context;
    const server = await startServer(context, { configuration: 'max_connections: 2' });
    const hourly = { reconnectWaitMs: 3_600_000, explainEveryMs: 3_600_000 };
    const { link, connection } = await connectByLink(context, server, hourly);
    link.begin({ kind: 'refuse' });
    const others: MessagingConnection[] = [];
    onTestFinished(async () => {
      for (const other of others) await other.close();
    });
    for (let count = 0; count < 2; count++)
      others.push(await connectNats({ url: server.url, startDeadlineMs: 20_000 }));
    const { accepted } = link;
    link.end();
    await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 1);
    expect(connection.isConnected()).toBe(false);
    // Room for the probe beside the connection.
    for (const other of others.splice(0)) await other.close();
    await expect.poll(() => connection.isConnected()).toBe(true);
  });

  it('logs once in an outage that the server has no room for another connection', async (context) => {
    const { expect } = context;
    const server = await startServer(context, { configuration: 'max_connections: 2' });
    const { link, connection } = await connectByLink(context, server);
    const others = [await connectNats({ url: server.url })];
    link.begin({ kind: 'refuse' });
    others.push(await connectNats({ url: server.url, startDeadlineMs: 20_000 }));
    link.end();
    const count = () => countLines(link.port, /maximum connections exceeded/);
    await expect.poll(count).toBeGreaterThan(0);
    expect(connection.problem()).toMatch(/maximum connections exceeded/);
    const { accepted } = link;
    await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 2);
    expect(count()).toBe(1);
    await others[1]!.close();
    await expect.poll(() => connection.problem()).toBeUndefined();
    await others[0]!.close();
  });

  it('asks for a restart when credentials of the environment stay refused', async (context) => {
    const { expect } = context;
    const before = await startServer(context, { user: 'service', password: 'before' });
    const { port } = before;
    const { connection } = await connectByLink(context, before, { user: 'service', password: 'before' });
    await before.stop();
    await startServer(context, { user: 'service', password: 'after', port });
    await expect(connection.needsRestart).resolves.toMatchObject({ code: 'UNAVAILABLE' });
    expect(connection.problem()).toMatch(/NATS_USER and NATS_PASSWORD/);
  });

  it('reads certificates again for each connection', async (context) => {
    const { expect, onTestFinished } = context;
    const files = { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key') };
    writeFileSync(files.certificate, TEST_CERTIFICATE);
    writeFileSync(files.key, TEST_KEY);
    const configuration = `tls { cert_file: "${files.certificate}", key_file: "${files.key}" }`;
    const server = await startServer(context, { configuration });
    let reads = 0;
    const tls = {
      get ca() {
        reads += 1;
        return TEST_CERTIFICATE;
      },
    };
    const connection = await connectNats({ url: `tls://localhost:${server.port}`, tls, reconnectWaitMs: 20 });
    onTestFinished(() => connection.close());
    const before = reads;
    await server.kill();
    await server.restart();
    await expect.poll(() => countLines(server.port, /works again/)).toBe(1);
    expect(reads).toBeGreaterThan(before);
  });

  it('reads a renewed credentials file when its JWT has ended', async (context) => {
    const { expect, onTestFinished } = context;
    const { configuration, formatCredentials } = buildNatsAccount();
    const server = await startServer(context, { configuration });
    const credsFile = join(folder, 'service.creds');
    writeFileSync(credsFile, formatCredentials(3));
    const connection = await connectNats({ url: server.url, credsFile, reconnectWaitMs: 20, explainEveryMs: 100 });
    onTestFinished(() => connection.close());
    await expect.poll(() => countLines(server.port, /refuses the connection.*NATS_CREDS/)).toBeGreaterThan(0);
    expect(connection.isConnected()).toBe(false);
    writeFileSync(credsFile, 'half of a file');
    writeFileSync(credsFile, formatCredentials(3_600));
    await expect.poll(() => connection.isConnected()).toBe(true);
  });
});

it('a link is dialed again as soon as the connection of a dial is closed, though a dial may take an hour', async (context) => {
  const { link, connection } = await connectByLink(context, await startServer(context));
  const hour = vi.spyOn(ReconnectPace.prototype, 'dialTimeoutMs').mockReturnValue(3_600_000);
  const { accepted } = link;
  link.begin({ kind: 'black-hole', direction: 'out', hitsNew: true });
  link.cut();
  await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 2);
  expect(connection.isConnected()).toBe(false);
  link.end();
  await expect.poll(() => countLines(link.port, /works again/)).toBe(1);
  hour.mockRestore();
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
