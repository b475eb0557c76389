import { describe, expect, it } from 'vitest';
import { freePort, startNats } from '@broomwagon/testing';
import { MessagingClient } from './client/messaging.client';
import { connectNats } from './connection';
import { echoController, startEchoApp } from './transport/echo-app.fixture';

describe('connectNats', () => {
  it('fails at the start deadline with a typed error that shows no credentials', async () => {
    const url = `nats://user:secret@127.0.0.1:${await freePort()}`;
    const attempt = connectNats({ url, startDeadlineMs: 300 });
    await expect(attempt).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(attempt).rejects.not.toThrow('secret');
  });

  it('waits for a server that starts later, reconnects after an outage, and serves again', async () => {
    const port = await freePort();
    const pending = connectNats({ url: `nats://127.0.0.1:${port}`, startDeadlineMs: 30_000 });
    const server = await startNats({ port });
    await (await pending).close();
    const app = await startEchoApp(server.url, echoController('outage-spec'));
    let reconnects = 0;
    app.connection.onReconnect = () => reconnects++;
    await server.kill();
    await expect.poll(() => app.connection.isConnected()).toBe(false);
    expect(reconnects).toBe(0);
    const during = app.client.request('rollout.v1.p.outage-spec.echo', { value: 1 }, { timeoutMs: 50 });
    await expect(during).rejects.toMatchObject({ code: 'TIMEOUT', retryable: true });
    await server.restart();
    const after = app.client.requestWithRetry(
      'rollout.v1.p.outage-spec.echo',
      { value: 2 },
      { deadlineMs: 20_000, attemptTimeoutMs: 500 },
    );
    await expect(after).resolves.toMatchObject({ value: 2 });
    expect(app.connection.isConnected()).toBe(true);
    expect(reconnects).toBe(1);
    expect(app.connection.isClosed()).toBe(false);
    await server.kill();
    await app.close(); // Also without the server.
    await expect(app.connection.closedForGood).resolves.toBeUndefined();
    await server.stop();
  });

  it('takes user and password, or a token, from the address; wrong credentials fail at once', async () => {
    const server = await startNats({ user: 'bw', password: 'p@ss:word' });
    const connection = await connectNats({ url: server.url });
    await new MessagingClient(connection).flush();
    await connection.close();
    const wrong = connectNats({
      url: `nats://127.0.0.1:${server.port}`,
      user: 'bw',
      password: 'no',
      startDeadlineMs: 60_000,
    });
    await expect(wrong).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await server.stop();
  });
});
