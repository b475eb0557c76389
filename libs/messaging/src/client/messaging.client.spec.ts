import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BroomwagonError, outages } from '@broomwagon/contracts';
import { testNatsUrl, testPool } from '@broomwagon/testing';
import { connectNats } from '../connection';
import { MessagingClient } from './messaging.client';
import { TypedClient } from './typed.client';

describe('MessagingClient', () => {
  const { pool } = testPool();
  const subject = (name: string): string => `rollout.v1.${pool}.${name}`;
  let client: MessagingClient;
  let server: MessagingClient;

  beforeAll(async () => {
    [client, server] = await Promise.all([connect(), connect()]);
  });
  afterAll(() => Promise.all([client.connection.close(), server.connection.close()]));
  const connect = async (): Promise<MessagingClient> => new MessagingClient(await connectNats({ url: testNatsUrl() }));

  it('matches a thousand interleaved replies to their requests', async () => {
    server.subscribe(subject('echo'), (body, context) => server.reply(context.replyTo as string, body));
    await server.flush();
    const numbers = Array.from({ length: 1_000 }, (_, index) => index);
    const send = (number: number) => client.request(subject('echo'), { number }, { timeoutMs: 60_000 });
    const replies = await Promise.all(numbers.map(send));
    expect(replies).toEqual(numbers.map((number) => ({ number })));
    expect(client.inFlight()).toBe(0);
  });

  it('throws the typed error the service answered', async () => {
    const error = new BroomwagonError('FENCED', 'old', { field: 'workerEpoch', details: { epoch: 'e4' } });
    server.subscribe(subject('fenced'), (_, context) => server.reply(context.replyTo as string, error));
    await server.flush();
    await expect(client.request(subject('fenced'), {})).rejects.toMatchObject({ ...error.toWire() });
  });

  it('throws UNAVAILABLE at once when no service handles the subject', async () => {
    await expect(client.request(subject('nobody'), {}, { timeoutMs: 60_000 })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      retryable: true,
    });
  });

  it('throws TIMEOUT when no reply arrives, and ignores the late one', async () => {
    let inbox = '';
    server.subscribe(subject('silent'), (_, context) => void (inbox = context.replyTo as string));
    await server.flush();
    await expect(client.request(subject('silent'), {}, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    server.reply(inbox, { late: true });
    await server.flush();
    await expect(client.request(subject('echo'), { after: 1 })).resolves.toEqual({ after: 1 });
  });

  it.each([
    [1_000, false],
    [0, true],
  ])('takes a call that waits %i ms and gets no reply within 50 ms for an outage: %s', async (waitMs, isOutage) => {
    outages.clear();
    server.subscribe(subject('request.claim'), () => undefined);
    await server.flush();
    const call = client.request(subject('request.claim'), { waitMs }, { timeoutMs: 50 });
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(outages.explains(new BroomwagonError('UNAVAILABLE', 'the coordinator does not answer'))).toBe(isOutage);
    outages.clear();
  });

  it('throws PAYLOAD_TOO_LARGE for a body the server would refuse', async () => {
    const body = { text: 'x'.repeat(1_100_000) };
    await expect(client.request(subject('echo'), body)).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });

  it('rejects waiting requests when the connection closes, and all later calls', async () => {
    const closing = await connect();
    server.subscribe(subject('hanging'), () => undefined);
    await server.flush();
    const waiting = closing.request(subject('hanging'), {}, { timeoutMs: 60_000 });
    const outcome = expect(waiting).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await closing.connection.close();
    await outcome;
    await expect(closing.request(subject('echo'), {})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(() => closing.publish(subject('echo'), {})).toThrow(BroomwagonError);
  });

  it('retries a retryable error until it succeeds, and no other error', async () => {
    let calls = 0;
    server.subscribe(subject('busy'), (body, context) => {
      calls++;
      const code = body.hopeless ? 'FENCED' : 'OVERLOADED';
      const busy = new BroomwagonError(code, 'busy', { retryAfterMs: 1 });
      server.reply(context.replyTo as string, calls < 3 ? busy : { calls });
    });
    await server.flush();
    const options = { deadlineMs: 5_000, random: () => 0.1 };
    await expect(client.requestWithRetry(subject('busy'), {}, options)).resolves.toEqual({ calls: 3 });
    calls = 0;
    await expect(client.requestWithRetry(subject('busy'), { hopeless: true }, options)).rejects.toThrow('busy');
    expect(calls).toBe(1);
  });

  it('shares events in a queue group, reports errors that a handler throws, and drains', async () => {
    const got: unknown[] = [];
    const errors: unknown[] = [];
    const options = { queue: 'readers', onError: (error: unknown) => errors.push(error) };
    const readers = [0, 1].map(() => server.subscribe(subject('event'), (body) => void got.push(body.n), options));
    await server.flush();
    client.publish(subject('event'), { n: 1 });
    client.publish(subject('event'), { n: 2 });
    client.connection.nats.publish(subject('event'), 'no json');
    await expect.poll(() => [...got].sort()).toEqual([1, 2]);
    await expect.poll(() => errors).toMatchObject([{ code: 'MALFORMED_JSON' }]);
    await Promise.all(readers.map((reader) => reader.drain()));
  });

  it('calls operations by the table of the protocol', async () => {
    const typed = new TypedClient(client);
    server.subscribe(`rollout.v1.*.lb.finish-session`, (body, context) => {
      if (context.pool === pool) {
        server.reply(context.replyTo as string, { finished: body.sessionId === 's' });
      }
    });
    await server.flush();
    expect(await typed.call(pool, 'lb.finish-session', { sessionId: 's' })).toEqual({ finished: true });
  });
});
