import { testNatsUrl, testPool } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { connectNats, type MessagingConnection } from '../connection';
import { ensureStream, readStream } from './stream';

const stream = testPool().pool.replaceAll(/\W/g, '_');
let connection: MessagingConnection;

beforeAll(async () => {
  connection = await connectNats({ url: testNatsUrl() });
  await ensureStream(connection, { name: stream, subjects: [`${stream}.>`], maxBytes: 1e6, maxAgeMs: 1e6 });
});
afterAll(async () => {
  await (await connection.nats.jetstreamManager()).streams.delete(stream);
  await connection.close();
});

afterEach(() => void vi.restoreAllMocks());

it('reports a read that gets no message for its time as UNAVAILABLE, unless none is left', async () => {
  const jetstream = connection.nats.jetstream();
  for (const text of ['a', 'b']) await jetstream.publish(`${stream}.x`, text);
  const { consumers } = jetstream;
  vi.spyOn(connection.nats, 'jetstream').mockReturnValue(jetstream);
  vi.spyOn(consumers, 'get').mockImplementation(async (...request) => {
    const consumer = await Object.getPrototypeOf(consumers).get.apply(consumers, request);
    const fetch = consumer.fetch.bind(consumer);
    let fetches = 0;
    // The second fetch gets nothing from the server.
    consumer.fetch = (options: object) => ((fetches += 1) === 2 ? [] : fetch(options));
    return consumer;
  });
  const read = async (whenRead: () => Promise<unknown>) => {
    const texts: string[] = [];
    for await (const { text } of readStream(connection, { stream, subject: `${stream}.>` }, 1)) {
      texts.push(text);
      await whenRead();
    }
    return texts;
  };
  await expect(read(async () => undefined)).rejects.toMatchObject({ code: 'UNAVAILABLE', retryable: true });
  const manager = await connection.nats.jetstreamManager();
  expect(await read(() => manager.streams.purge(stream))).toEqual(['a']);
});

it('changes the bounds of a stream that exists, and keeps its messages from then on', async () => {
  const description = { name: stream, subjects: [`${stream}.>`], maxBytes: 2e6, maxAgeMs: 2e6 };
  const { streams } = await connection.nats.jetstreamManager();
  const bounds = async () => (await streams.info(stream)).config;
  await ensureStream(connection, description);
  expect(await bounds()).toMatchObject({ max_bytes: 2e6, max_age: 2e12, deny_delete: false });
  await ensureStream(connection, { ...description, keepsMessages: true });
  expect(await bounds()).toMatchObject({ max_bytes: 2e6, max_age: 2e12, deny_delete: true, deny_purge: true });
  const { seq } = await connection.nats.jetstream().publish(`${stream}.x`, 'kept');
  await expect(streams.purge(stream)).rejects.toThrow(/purge/);
  await expect(streams.deleteMessage(stream, seq)).rejects.toThrow(/delete/);
  // Options that the server does not allow leave the stream as it is.
  await ensureStream(connection, { ...description, maxAgeMs: 1 });
  expect(await bounds()).toMatchObject({ max_age: 2e12 });
});
