import { PassThrough } from 'node:stream';
import { Logger } from '@nestjs/common';
import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, ensureStream, type MessagingConnection } from '@broomwagon/messaging';
import { Metrics } from '@broomwagon/platform';
import { type ServerHandle, startNats } from '@broomwagon/testing';
import type { Request, Response } from 'express';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { AdminApiConfig } from '../admin-api.config';
import { EventFeed } from './event-feed';

const POOL = 'p';
const TYPE = 'round.opened';
// The tests of this file delete the stream of events: they need a server that no other test uses.
let server: ServerHandle;
let connection: MessagingConnection;
let feed: EventFeed;
let beat: () => void;
const identify = vi.fn<(token: string) => Promise<unknown>>();

beforeAll(async () => {
  server = await startNats();
  connection = await connectNats({ url: server.url });
});
afterAll(async () => {
  await connection?.close();
  await server?.stop();
});
beforeEach(() => {
  const intervals = vi.spyOn(globalThis, 'setInterval');
  identify.mockReset().mockResolvedValue({ id: 'someone' });
  feed = new EventFeed(connection, new AdminApiConfig(), { identify } as never, new Metrics('admin-api'));
  [beat] = intervals.mock.calls[0]! as [() => void];
  intervals.mockRestore();
});
afterEach(async () => {
  vi.restoreAllMocks();
  feed.onModuleDestroy();
  await deleteStream();
});

const makeStream = () => {
  const description = { name: EVENTS_STREAM, subjects: [eventSubject('*', '>')], maxBytes: 1e7, maxAgeMs: 1e7 };
  return ensureStream(connection, description);
};
async function deleteStream(): Promise<void> {
  await (await connection.nats.jetstreamManager()).streams.delete(EVENTS_STREAM).catch(() => false);
}
async function happen(sequence: number): Promise<void> {
  const body = JSON.stringify({ type: TYPE, pool: POOL, atMs: 1, sequence });
  await connection.nats.jetstream().publish(eventSubject(POOL, TYPE), body);
}

/** Opens a stream of events that stays unread until `read`. */
function open(lastId?: number, token = 'token') {
  const response = Object.assign(new PassThrough({ highWaterMark: 1 }), {
    status: () => response,
    set: () => response,
    flushHeaders: () => undefined,
  });
  let text = '';
  const headers: Record<string, string | undefined> = {
    Authorization: `Bearer ${token}`,
    'Last-Event-ID': lastId?.toString(),
  };
  const request = { get: (name: string) => headers[name] } as unknown as Request;
  return {
    opened: feed.open({ pool: POOL, body: {} } as never, request, response as unknown as Response),
    read: () => void response.on('data', (chunk: Buffer) => (text += chunk.toString())),
    isOpen: () => !response.writableEnded,
    sequences: () => [...text.matchAll(/"sequence":(\d+)/g)].map(([, sequence]) => Number(sequence)),
  };
}

it.each(['before', 'after'])('reads a stream that was created again %s a heartbeat', async (when) => {
  await makeStream();
  const first = open();
  first.read();
  await first.opened;
  for (const sequence of [1, 2, 3]) await happen(sequence);
  await expect.poll(first.sequences).toEqual([1, 2, 3]);
  const other = open();
  other.read();
  await other.opened;

  await deleteStream();
  if (when === 'before') {
    await makeStream();
    await happen(4);
  }
  beat();
  await expect.poll(first.isOpen).toBe(false);
  expect(other.isOpen()).toBe(false);
  const again = open(3);
  again.read();
  await again.opened;
  if (when === 'after') {
    await makeStream();
    await happen(4);
  }
  await expect.poll(again.sequences).toEqual([4]);
  await happen(5);
  await expect.poll(again.sequences).toEqual([4, 5]);
  beat();
  await happen(6);
  await expect.poll(again.sequences).toEqual([4, 5, 6]);
  expect(again.isOpen()).toBe(true);
});

it('logs once that the stream of events is missing, and once that it is followed', async () => {
  const warn = vi.spyOn(Logger.prototype, 'warn');
  const log = vi.spyOn(Logger.prototype, 'log');
  const reader = open();
  reader.read();
  await reader.opened;
  const manager = await connection.nats.jetstreamManager();
  const looks = vi.spyOn(Object.getPrototypeOf(manager.streams) as typeof manager.streams, 'info');
  await expect.poll(() => looks.mock.calls.length, { timeout: 20_000 }).toBeGreaterThan(1);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(log).not.toHaveBeenCalled();
  await makeStream();
  await happen(1);
  await expect.poll(reader.sequences).toEqual([1]);
  await expect.poll(() => log.mock.calls).toEqual([['The stream of events is followed']]);
  expect(warn).toHaveBeenCalledTimes(1);
});

it('ends the streams of a revoked token, and no stream while tokens cannot be checked', async () => {
  await makeStream();
  const [first, second, other] = [open(undefined, 'revoked'), open(undefined, 'revoked'), open()];
  for (const reader of [first, second, other]) reader.read();
  await Promise.all([first, second, other].map(({ opened }) => opened));
  identify.mockRejectedValue(new Error('Redis does not answer'));
  beat();
  await expect.poll(() => identify.mock.calls).toEqual([['revoked'], ['token']]);
  expect([first, second, other].map((reader) => reader.isOpen())).toEqual([true, true, true]);
  identify.mockImplementation(async (token) => (token === 'revoked' ? undefined : { id: 'someone' }));
  beat();
  await expect.poll(() => identify.mock.calls.length).toBe(4);
  expect([first, second, other].map((reader) => reader.isOpen())).toEqual([false, false, true]);
});

it('refuses a reader of stored events while 64 others read them', async () => {
  await makeStream();
  for (const sequence of [1, 2, 3]) await happen(sequence);
  const readers = Array.from({ length: 64 }, () => open(1));
  await expect(open(1).opened).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
  const live = open();
  live.read();
  await live.opened;
  readers[0]!.read();
  await readers[0]!.opened;
  const next = open(1);
  for (const reader of [next, ...readers]) reader.read();
  await Promise.all([next, ...readers].map(({ opened }) => opened));
  expect(next.sequences()).toEqual([2, 3]);
});
