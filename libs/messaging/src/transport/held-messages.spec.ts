import { BroomwagonError } from '@broomwagon/contracts';
import { FaultyLink, requestRaw, startNats, type ServerHandle } from '@broomwagon/testing';
import { headers as makeHeaders, type Msg } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { MessagingClient } from '../client/messaging.client';
import { connectNats } from '../connection';
import { readWireError } from '../wire';
import { CLOCK_TOLERANCE_MS } from './deadline';
import { echoController, startEchoApp, type EchoApp } from './echo-app.fixture';

const TIMEOUT_MS = 50;
const subject = 'rollout.v1.p.held.echo';
const controller = echoController('held');
const outcomes: string[] = [];
const metrics = { handled: (_: string, outcome: string) => void outcomes.push(outcome), inFlight: () => undefined };

describe('a request whose caller has given up', () => {
  let server: ServerHandle;
  let link: FaultyLink;
  let app: EchoApp;
  let caller: MessagingClient;
  beforeAll(async () => {
    server = await startNats();
    link = await FaultyLink.start(server.port);
    app = await startEchoApp(`nats://127.0.0.1:${link.port}`, controller, { metrics });
    caller = new MessagingClient(await connectNats({ url: server.url, reconnectWaitMs: 20 }));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    outcomes.length = 0;
    controller.seen.length = 0;
  });
  afterAll(async () => {
    await caller?.connection.close();
    await app?.close();
    await link?.stop();
    await server?.stop();
  });

  /** Moves the clocks of caller and service. */
  const moveClocks = (byMs: number): void => {
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + byMs);
  };
  const ask = (client: MessagingClient, value: number, timeoutMs = 30_000) =>
    client.request(subject, { value }, { timeoutMs });

  it('is not processed when a silent link of the service delivers it', async () => {
    await ask(caller, 1);
    link.hold();
    await expect(ask(caller, 2, TIMEOUT_MS)).rejects.toMatchObject({ code: 'TIMEOUT' });
    moveClocks(TIMEOUT_MS + CLOCK_TOLERANCE_MS + 1);
    link.release();
    await expect(ask(caller, 3)).resolves.toMatchObject({ value: 3 });
    expect(outcomes).toEqual(['OK', 'TIMEOUT', 'OK']);
    expect(controller.seen).toHaveLength(2);
  });

  it('is not sent when the link of the caller is restored', async () => {
    const callerLink = await FaultyLink.start(server.port);
    const url = `nats://127.0.0.1:${callerLink.port}`;
    const client = new MessagingClient(await connectNats({ url, reconnectWaitMs: 20 }));
    await ask(client, 1);
    callerLink.begin({ kind: 'refuse' });
    await expect.poll(() => client.connection.isConnected()).toBe(false);
    await expect(ask(client, 2, TIMEOUT_MS)).rejects.toMatchObject({ code: 'TIMEOUT' });
    const waiting = ask(client, 3);
    callerLink.end();
    await expect(waiting).resolves.toMatchObject({ value: 3 });
    expect(outcomes).toEqual(['OK', 'OK']);
    expect(client.inFlight()).toBe(0);
    await client.connection.close();
    await callerLink.stop();
  });

  it.each([
    ['slow', -3_600_000],
    ['fast', 3_600_000],
  ])('is refused once and then processed when it waits and its clock is only %s', async (_, skewMs) => {
    moveClocks(skewMs);
    const call = ask(caller, 4);
    vi.restoreAllMocks();
    await expect(call).resolves.toMatchObject({ value: 4 });
    expect(outcomes).toEqual(['TIMEOUT', 'OK']);
    await expect(ask(caller, 5)).resolves.toMatchObject({ value: 5 });
    expect(outcomes).toEqual(['TIMEOUT', 'OK', 'OK']);
  });

  it('gets the time of the service with the refusal, and no refusal without a time of sending', async () => {
    const send = async (sentAt: string | undefined): Promise<[error: BroomwagonError | undefined, message: Msg]> => {
      const headers = makeHeaders();
      headers.set('Broomwagon-Timeout-Ms', '1000');
      if (sentAt !== undefined) headers.set('Broomwagon-Sent-At-Ms', sentAt);
      const message = await requestRaw(caller.connection.nats, subject, '{"value":1}', { headers });
      return [readWireError(message.json()), message];
    };
    const [error, message] = await send(String(Date.now() - 60_000));
    expect(error).toMatchObject({ code: 'TIMEOUT', retryable: true, details: { timeoutMs: 1_000 } });
    expect(error?.message).toMatch(/ms after it was sent with a timeout of 1000 ms; it was not processed$/);
    expect(Math.abs(Number(message.headers?.get('Broomwagon-Read-At-Ms')) - Date.now())).toBeLessThan(60_000);
    for (const sentAt of [undefined, 'NaN', '', String(Date.now())]) expect((await send(sentAt))[0]).toBeUndefined();
  });
});
