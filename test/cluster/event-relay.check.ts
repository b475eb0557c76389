import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, ensureStream, MessagingClient, readStream } from '@broomwagon/messaging';
import { Metrics } from '@broomwagon/platform';
import { connectRedis, EventOutbox } from '@broomwagon/state';
import { testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CoordinatorConfig } from '../../apps/trainer-coordinator/src/coordinator.config';
import { CoordinatorMetrics } from '../../apps/trainer-coordinator/src/coordinator.metrics';
import { EventRelayService } from '../../apps/trainer-coordinator/src/events/event-relay.service';
import type { RoundReports } from '../../apps/trainer-coordinator/src/rounds/round-reports';
import { NatsCluster } from '../../libs/testing/src/servers/nats-cluster';

const { pool } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
let nats: NatsCluster;
beforeAll(async () => {
  nats = await NatsCluster.start();
}, 120_000);
afterAll(async () => {
  await redis.del(`${pool}:{${pool}}:events`);
  await redis.quit();
  await nats?.stop();
});

it('keeps events while the stream has no leader, and then the stream has all of them, once', async () => {
  const [first, ...others] = nats.servers;
  const connection = await connectNats({ url: first!.url });
  const outbox = new EventOutbox(redis, pool, 'relay');
  const config = Object.assign(new CoordinatorConfig(), { natsStreamReplicas: 3 });
  const metrics = new CoordinatorMetrics(new Metrics('test'));
  const reports = { note: async () => undefined } as unknown as RoundReports;
  const relay = new EventRelayService(outbox, new MessagingClient(connection), config, metrics, reports);
  const happen = async (sequence: number) => {
    const finished = { requestId: 'j/g/0', roundId: 'r', attempt: '1-a', tokens: 3, attemptTokens: 3 };
    const json = JSON.stringify({ ...finished, finishReason: 'stop', sequence });
    await redis.xadd(`${pool}:{${pool}}:events`, '*', 'type', 'request.finished', 'json', json);
  };
  const left = () => redis.xlen(`${pool}:{${pool}}:events`);
  // A new cluster takes a moment to know its members.
  const stream = { name: EVENTS_STREAM, subjects: [eventSubject('*', '>')], maxBytes: 1e7, maxAgeMs: 6e6, replicas: 3 };
  const make = () => ensureStream(connection, stream).then(() => true);
  await expect.poll(() => make().catch(() => false), { timeout: 60_000 }).toBe(true);
  await happen(1);
  await relay.relay(pool);
  expect(await left()).toBe(0);

  // The server that is left answers, without JetStream.
  await Promise.all(others.map((server) => server.kill()));
  for (let sequence = 2; sequence <= 4; sequence += 1) {
    await happen(sequence);
    await expect(relay.relay(pool)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  }
  expect(await left()).toBe(3);

  await Promise.all(others.map((server) => server.restart()));
  await expect.poll(() => relay.relay(pool).then(left, left), { timeout: 60_000 }).toBe(0);
  const found: number[] = [];
  const position = { stream: EVENTS_STREAM, subject: eventSubject(pool, '>'), from: 1 };
  for await (const { text } of readStream(connection, position, 256)) {
    found.push((JSON.parse(text) as { sequence: number }).sequence);
  }
  expect(found).toEqual([1, 2, 3, 4]);
  await connection.close();
}, 300_000);
