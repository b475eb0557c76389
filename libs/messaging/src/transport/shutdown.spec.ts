import { afterAll, describe, expect, it } from 'vitest';
import { testNatsUrl } from '@broomwagon/testing';
import { MessagingClient } from '../client/messaging.client';
import { connectNats } from '../connection';
import { echoController, startEchoApp } from './echo-app.fixture';

describe('shutdown of one of two replicas under load', () => {
  const name = 'shutdown-spec';
  let client: MessagingClient;
  afterAll(() => client.connection.close());

  it('loses no request, and the other replica serves on', async () => {
    client = new MessagingClient(await connectNats({ url: testNatsUrl() }));
    const [leaving, staying] = await Promise.all([
      startEchoApp(testNatsUrl(), echoController(name)),
      startEchoApp(testNatsUrl(), echoController(name)),
    ]);
    const answers: Promise<unknown>[] = [];
    const send = (): void => {
      answers.push(client.request(`rollout.v1.p.${name}.echo`, { value: 1, waitMs: 100 }, { timeoutMs: 5_000 }));
    };
    const load = setInterval(() => Array.from({ length: 10 }).forEach(send), 5);
    await expect.poll(() => leaving.transport.inHand()).toBeGreaterThan(20);
    const closing = leaving.close();
    await expect.poll(() => leaving.transport.isDraining()).toBe(true);
    const sentAtClose = answers.length;
    await closing;
    expect(leaving.transport.inHand()).toBe(0);
    await expect.poll(() => answers.length).toBeGreaterThan(sentAtClose + 50);
    clearInterval(load);
    const results = await Promise.allSettled(answers);
    expect(results.filter((result) => result.status === 'rejected')).toEqual([]);
    await staying.close();
  });

  it('gives up on a handler that never ends, at its deadline', async () => {
    const controller = echoController('stuck-spec');
    const app = await startEchoApp(testNatsUrl(), controller, { drainDeadlineMs: 200 });
    controller.gate.close();
    app.client.publish('rollout.v1.p.stuck-spec.event', { value: 1 });
    await expect.poll(() => controller.gate.waiting).toBe(1);
    await app.close();
    expect(app.connection.isClosed()).toBe(true);
    controller.gate.lift();
  });
});
