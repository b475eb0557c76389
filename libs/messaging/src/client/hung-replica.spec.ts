import { headers as makeHeaders, type Msg } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { requestRaw, testNatsUrl, testPool } from '@broomwagon/testing';
import { connectNats, type MessagingConnection } from '../connection';
import { ReplySubjects } from '../transport/reply-subjects';
import { echoController, startEchoApp, type EchoApp } from '../transport/echo-app.fixture';
import { REPLICA_HEADER } from '../wire';
import { MessagingClient } from './messaging.client';

const REPEAT_AFTER_MS = 100;
const { pool } = testPool();

describe('a group with a replica that hangs', () => {
  const connections: MessagingConnection[] = [];
  const open = async (): Promise<MessagingConnection> => {
    const connection = await connectNats({ url: testNatsUrl() });
    connections.push(connection);
    return connection;
  };
  let apps: EchoApp[] = [];
  let client: MessagingClient;
  beforeAll(async () => {
    client = new MessagingClient(await open(), new ReplySubjects(), REPEAT_AFTER_MS);
  });
  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));
  afterAll(() => Promise.all(connections.map((connection) => connection.close())));

  /** A member of the group that takes its share and does not reply. @returns the inboxes of the messages it takes */
  async function hang(subject: string): Promise<string[]> {
    const taken: string[] = [];
    const { nats } = await open();
    nats.subscribe(subject, { queue: 'echo', callback: (_, { reply }) => void taken.push(reply!) });
    nats.subscribe(`${subject}.mark`, { callback: () => void taken.push('mark') });
    await nats.flush();
    return taken;
  }

  it('answers every call, the share of the silent one on the subject of the other', async () => {
    const controller = echoController('hung');
    apps = [await startEchoApp(testNatsUrl(), controller)];
    const subject = `rollout.v1.${pool}.hung.echo`;
    const taken = await hang(subject);
    const calls = Array.from({ length: 200 }, (_, value) =>
      client.request<{ value: number }>(subject, { value: value % 100 }, { timeoutMs: 60_000 }),
    );
    // NATS delivers in order: a request repeated in the group before the first reply comes before the mark.
    await Promise.race(calls);
    client.publish(`${subject}.mark`, {});
    const answers = await Promise.all(calls);
    expect(answers.map(({ value }) => value)).toEqual(calls.map((_, index) => index % 100));
    await expect.poll(() => taken).toContain('mark');
    const afterReply = taken.slice(taken.indexOf('mark'));
    expect(afterReply.filter((inbox) => inbox.endsWith('-r'))).toEqual([]);
    const direct = controller.seen.filter((context) => context.subject.includes('.replica.'));
    expect(direct.length).toBeGreaterThan(0);
    expect(direct[0]!.pool).toBe(pool);
    expect(client.inFlight()).toBe(0);
  });

  it('repeats in the group while no replica has replied', async () => {
    const controller = echoController('quiet');
    // NATS chooses a replica at random. With one other replica, all nine sends would go to the silent one in 1 of 500
    // runs.
    apps = await Promise.all([1, 2, 3].map(() => startEchoApp(testNatsUrl(), controller)));
    const subject = `rollout.v1.${pool}.quiet.echo`;
    await hang(subject);
    for (let value = 0; value < 5; value++) {
      expect(await client.request(subject, { value }, { timeoutMs: 60_000 })).toMatchObject({ value });
    }
  });

  it('bounds the repeats to a slow service, and the requests to a silent one', async () => {
    const subject = `rollout.v1.${pool}.silent.echo`;
    let taken = 0;
    const { nats } = await open();
    nats.subscribe(subject, { callback: () => void taken++ });
    await nats.flush();
    const calls = Array.from({ length: 4_096 }, () => client.request(subject, {}, { timeoutMs: 4_000 }));
    const ended = Promise.allSettled(calls);
    await expect
      .poll(() => client.request(subject, {}, { timeoutMs: 200 }).catch((error: { code: string }) => error.code))
      .toBe('OVERLOADED');
    // Each of 256 may have been repeated at 100, 300 and 700 ms, and so on.
    expect(taken).toBeLessThan(4_096 + 256 * 8 + 100);
    expect((await ended).every((call) => call.status === 'rejected')).toBe(true);
    expect(client.inFlight()).toBe(0);
  });

  it('is named in replies to callers that send their timeout', async () => {
    apps = [await startEchoApp(testNatsUrl(), echoController('named'))];
    const { replicaId } = apps[0]!.connection;
    const headers = makeHeaders();
    headers.set('Broomwagon-Timeout-Ms', '5000');
    const { nats } = client.connection;
    const ask = (operation: string, body: string, own?: typeof headers): Promise<Msg> =>
      requestRaw(nats, `rollout.v1.${pool}.${operation}`, body, { headers: own });
    expect((await ask('named.echo', '{"value": 1}', headers)).headers?.get(REPLICA_HEADER)).toBe(replicaId);
    expect((await ask('named.echo', '{"value": "x"}', headers)).headers?.get(REPLICA_HEADER)).toBe(replicaId);
    expect((await ask('named.echo', '{"value": 1}')).headers).toBeUndefined();
    const own = await ask(`replica.${replicaId}.named.echo`, '{"value": 1}');
    expect(own.json()).toMatchObject({ value: 1, pool });
    await expect(ask(`replica.${replicaId}.no.such`, '{}')).rejects.toMatchObject({ code: '503' });
  });
});
