import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, MessagingClient } from '@broomwagon/messaging';
import { connectRedis, EventOutbox } from '@broomwagon/state';
import { Metrics } from '@broomwagon/platform';
import { flushPrefix, startNats, testPool, testRedisUrl, type ServerHandle } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import type { RoundReports } from '../rounds/round-reports';
import { EventRelayService } from './event-relay.service';

const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const metrics = new CoordinatorMetrics(new Metrics('test'));
const ends: (() => Promise<unknown>)[] = [];
let server: ServerHandle;

beforeAll(async () => {
  const account = (name: string, more: string) => `${name} { users: [{ user: ${name}, password: x }] ${more} }`;
  const accounts = [account('streams', ', jetstream: enabled'), account('plain', '')].join('\n');
  server = await startNats({ configuration: `accounts {\n${accounts}\n}` });
});
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));
afterAll(async () => {
  await server.stop();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
  await redis.quit();
});

/** Writes events as `events/events.lua` does. */
async function happen(pool: string, from: number, to: number): Promise<void> {
  const pipeline = redis.pipeline();
  const finished = {
    requestId: 'j/g/0',
    roundId: 'r',
    attempt: '1-a',
    tokens: 3,
    attemptTokens: 3,
    finishReason: 'stop',
  };
  for (let sequence = from; sequence <= to; sequence++) {
    const body = JSON.stringify({ ...finished, sequence });
    pipeline.xadd(`${prefix}:{${pool}}:events`, '*', 'type', 'request.finished', 'json', body);
  }
  await pipeline.exec();
}

/** Opens replicas that relay events, and a permanent subscriber that records the events it receives. */
async function open(user: string, pool: string) {
  const connect = () => connectNats({ url: `nats://${user}:x@127.0.0.1:${server.port}`, reconnectWaitMs: 20 });
  const heard: number[] = [];
  const listener = await connect();
  listener.nats.subscribe(eventSubject(pool, '>'), {
    callback: (_, message) => void heard.push(message.json<{ sequence: number }>().sequence),
  });
  await listener.nats.flush();
  const relays: EventRelayService[] = [];
  const connections = [listener];
  for (const name of ['a', 'b']) {
    const connection = await connect();
    connections.push(connection);
    const outbox = new EventOutbox(redis, prefix, name);
    const reports = { note: async () => undefined } as unknown as RoundReports;
    relays.push(
      new EventRelayService(outbox, new MessagingClient(connection), new CoordinatorConfig(), metrics, reports),
    );
  }
  ends.push(() => Promise.all(connections.map((connection) => connection.close())));
  /** Runs all replicas once, like their periodic tasks: an error is logged, and the next run follows. */
  const run = () => Promise.all(relays.map((relay) => relay.relay(pool).catch(() => undefined)));
  const runWell = () => Promise.all(relays.map((relay) => relay.relay(pool)));
  const left = () => redis.xlen(`${prefix}:{${pool}}:events`);
  const connected = () => connections.every((connection) => connection.isConnected());
  return { heard, run, runWell, left, connected, listener };
}

const numbers = (to: number) => Array.from({ length: to }, (_, index) => index + 1);

it.each(['streams', 'plain'])('keeps events while NATS is down, and publishes all in order (%s)', async (user) => {
  const pool = `down-${user}`;
  const { heard, run, runWell, left, connected } = await open(user, pool);
  await happen(pool, 1, 300);
  await run();
  await expect.poll(() => heard).toEqual(numbers(300));
  await server.kill();
  await expect.poll(connected).toBe(false);
  for (let from = 301; from <= 900; from += 200) {
    await happen(pool, from, from + 199);
    // Nothing is sent, and nothing waits for an answer.
    await runWell();
  }
  expect(await left()).toBe(600);
  await server.restart();
  await expect.poll(connected, { timeout: 20_000 }).toBe(true);
  await expect.poll(async () => run().then(left), { timeout: 20_000 }).toBe(0);
  await expect.poll(() => heard).toEqual(numbers(900));
});

it('has every event in the stream once, in order, when NATS dies while they are published', async () => {
  const pool = 'dying';
  const { run, left, connected, listener } = await open('streams', pool);
  await happen(pool, 1, 3_000);
  const running = run();
  await expect.poll(left, { interval: 1 }).toBeLessThan(3_000);
  await server.kill();
  await running;
  expect(await left()).toBeGreaterThan(0);
  await server.restart();
  await expect.poll(connected, { timeout: 20_000 }).toBe(true);
  await expect.poll(async () => run().then(left), { timeout: 20_000 }).toBe(0);
  const found: number[] = [];
  const consumer = await listener.nats.jetstream().consumers.get('BROOMWAGON_EVENTS', {
    filterSubjects: eventSubject(pool, '>'),
  });
  for await (const message of await consumer.fetch({ max_messages: 3_000, expires: 10_000 })) {
    found.push(message.json<{ sequence: number }>().sequence);
    if (found.length === 3_000) break;
  }
  expect(found).toEqual(numbers(3_000));
});

it('keeps events that the stream refuses, names the stream, and relays them when the stream takes them', async () => {
  const pool = 'refused';
  const { heard, run, runWell, left, listener } = await open('streams', pool);
  await happen(pool, 1, 1);
  await expect.poll(async () => run().then(left)).toBe(0);
  const { streams } = await listener.nats.jetstreamManager();
  await streams.update(EVENTS_STREAM, { max_msg_size: 1 });
  await happen(pool, 2, 3);
  await expect(runWell()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(`${EVENTS_STREAM}: .*size`) as string,
  });
  expect(await left()).toBe(2);
  await streams.update(EVENTS_STREAM, { max_msg_size: -1 });
  await expect.poll(async () => run().then(left)).toBe(0);
  await expect.poll(() => [...new Set(heard)]).toEqual([1, 2, 3]);
});
