import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { FaultyLink, freePort, startNats, type NatsOptions, type ServerHandle } from '@broomwagon/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MessagingClient } from './client/messaging.client';
import { connectNats } from './connection';
import { echoController, startEchoApp, type EchoApp } from './transport/echo-app.fixture';

const SUBJECT = 'rollout.v1.p.servers-spec.echo';
const lines: string[] = [];
const ends: (() => unknown)[] = [];
let server: ServerHandle;

beforeEach(() => {
  lines.length = 0;
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => {
      lines.push(parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' '));
    });
  }
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
  vi.restoreAllMocks();
});

const countLines = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
async function start(options: NatsOptions = {}): Promise<void> {
  server = await startNats(options);
  ends.push(() => server.stop());
}
async function startLink(): Promise<FaultyLink> {
  const link = await FaultyLink.start(server.port);
  ends.push(() => link.stop());
  return link;
}
async function startService(url: string): Promise<EchoApp> {
  const app = await startEchoApp(url, echoController('servers-spec'));
  ends.push(() => app.close());
  return app;
}

describe('addresses that a NATS cluster announces', () => {
  /** Two servers, which announce an address where nothing listens. */
  const startAnnouncing = async () => {
    const [unused, one, other] = [await freePort(), await freePort(), await freePort()];
    const cluster = (own: number, peer: number) =>
      `cluster { name: c, listen: "127.0.0.1:${own}", routes: ["nats://127.0.0.1:${peer}"] }`;
    const address = `127.0.0.1:${unused}`;
    const second = startNats({ configuration: `client_advertise: "${address}"\n${cluster(other, one)}` });
    await start({ configuration: `client_advertise: "${address}"\n${cluster(one, other)}` });
    const { stop } = await second;
    ends.push(stop);
    const link = await startLink();
    const connect = async (ignoreClusterUpdates?: boolean) => {
      const url = `nats://127.0.0.1:${link.port}`;
      const connection = await connectNats({ url, reconnectWaitMs: 20, ignoreClusterUpdates });
      ends.push(() => connection.close());
      await expect.poll(() => connection.nats.info?.connect_urls).toContain(address);
      return connection;
    };
    return { address, link, connect };
  };

  it('are named when none answers, and the link works again by the address of NATS_URL', async () => {
    const { address, link, connect } = await startAnnouncing();
    await connect();
    const { accepted } = link;
    link.begin({ kind: 'refuse' });
    // Between two dials of the address of NATS_URL, the announced one is dialed.
    await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 3);
    link.end();
    await expect.poll(() => countLines(/works again/)).toBe(1);
    expect(countLines(new RegExp(`announces addresses that did not answer: .*${address}`))).toBe(1);
  });

  it('are not dialed with ignoreClusterUpdates', async () => {
    const { link, connect } = await startAnnouncing();
    await connect(true);
    const { accepted } = link;
    link.begin({ kind: 'refuse' });
    await expect.poll(() => link.accepted).toBeGreaterThan(accepted + 3);
    link.end();
    await expect.poll(() => countLines(/works again/)).toBe(1);
    expect(countLines(/announces addresses/)).toBe(0);
  });
});

describe('a service that reads too slowly', () => {
  it('is cut by NATS, connects again, and calls that waited are answered', async () => {
    await start({ configuration: 'max_pending: 1MB\nwrite_deadline: "1s"' });
    const link = await startLink();
    const app = await startService(`nats://127.0.0.1:${link.port}`);
    const caller = await connectNats({ url: server.url });
    ends.push(() => caller.close());
    const client = new MessagingClient(caller);
    link.hold();
    const call = client.requestWithRetry(SUBJECT, { value: 7 }, { deadlineMs: 60_000, attemptTimeoutMs: 20_000 });
    // More than the buffers of all sockets between NATS and the service hold.
    const body = JSON.stringify({ value: 1, padding: 'x'.repeat(500_000) });
    for (let index = 0; index < 64; index += 1) caller.nats.publish(SUBJECT, body);
    await caller.nats.flush();
    await expect.poll(() => readFileSync(server.process!.description.logFile, 'utf8')).toMatch(/slow consumer/i);
    link.release();
    await expect(call).resolves.toMatchObject({ value: 7 });
    expect(app.connection.isConnected()).toBe(true);
    expect(countLines(/Outage begins/)).toBeGreaterThan(0);
  });
});

describe('a limit of NATS for messages that becomes smaller', () => {
  it('ends a call above it with PAYLOAD_TOO_LARGE, and names the limit once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-limit-'));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    await start({ folder, configuration: 'max_payload: 1MB' });
    const { client } = await startService(server.url);
    const file = join(folder, 'nats.conf');
    writeFileSync(file, readFileSync(file, 'utf8').replace('max_payload: 1MB', 'max_payload: 4KB'));
    process.kill(server.pid!, 'SIGHUP');
    const large = { value: 1, padding: 'x'.repeat(8_000) };
    // NATS ends the connection at the first call above its new limit, and that call gets no answer.
    const call = () =>
      client.request(SUBJECT, large, { timeoutMs: 2_000 }).catch((error: { code: string }) => error.code);
    await expect.poll(call).toBe('PAYLOAD_TOO_LARGE');
    await expect(client.request(SUBJECT, { value: 2 }, { timeoutMs: 30_000 })).resolves.toMatchObject({ value: 2 });
    expect(countLines(/takes messages of up to 4096 bytes/)).toBeGreaterThan(0);
    expect(client.connection.warning()).toMatch(/max_payload/);
  });
});
