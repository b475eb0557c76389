import { PassThrough } from 'node:stream';
import type { PoolEvent } from '@broomwagon/contracts';
import type { Response } from 'express';
import { expect, it, vi } from 'vitest';
import { type CutReason, EventReader } from './event-reader';

const TEXT = 'x'.repeat(1_000);
const event = { type: 'round.progressed' } as PoolEvent;

function open(mostUnreadBytes: number) {
  const response = new PassThrough({ highWaterMark: 1 });
  const cuts: CutReason[] = [];
  const reader = new EventReader(
    response as unknown as Response,
    () => true,
    () => mostUnreadBytes,
    (reason) => cuts.push(reason),
  );
  return { response, cuts, reader };
}

it('cuts off a live reader above its unread bytes, once', async () => {
  const { response, cuts, reader } = open(10_000);
  await reader.live();
  for (let sequence = 1; sequence <= 30; sequence++) reader.offer(sequence, event, TEXT);
  expect(cuts).toEqual(['unread']);
  expect(response.destroyed).toBe(true);
});

it('sends events that arrived while a reader caught up, at the speed of the reader', async () => {
  const { response, cuts, reader } = open(200_000);
  for (let sequence = 1; sequence <= 100; sequence++) reader.offer(sequence, event, TEXT);
  const live = reader.live();
  reader.offer(101, event, TEXT);
  let text = '';
  response.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await live;
  reader.offer(102, event, TEXT);
  await expect.poll(() => [...text.matchAll(/^id: /gm)].length).toBe(102);
  expect([...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual(
    Array.from({ length: 102 }, (_, index) => index + 1),
  );
  expect(cuts).toEqual([]);
});

it('ends a reader that reads nothing without an error, and cuts its connection off', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const { response, reader } = open(10_000);
  const errors: Error[] = [];
  response.on('error', (error) => errors.push(error));
  await reader.live();
  reader.offer(1, event, TEXT);
  reader.end();
  // The heartbeat of all readers may come before the caller has read the remaining bytes.
  reader.beat();
  await new Promise((settle) => setImmediate(settle));
  expect(errors).toEqual([]);
  expect(response.destroyed).toBe(false);
  vi.runAllTimers();
  expect(response.destroyed).toBe(true);
  vi.useRealTimers();
});

it('cuts off a reader that catches up too slowly', () => {
  const { cuts, reader } = open(10_000);
  for (let sequence = 1; sequence <= 30; sequence++) reader.offer(sequence, event, TEXT);
  expect(cuts).toEqual(['behind']);
});

it('cuts off a reader that reads nothing while stored events are replayed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const { response, cuts, reader } = open(10_000);
  const replaying = reader.replay(1, event, TEXT);
  vi.runAllTimers();
  expect(await replaying).toBe(false);
  expect(cuts).toEqual(['stalled']);
  expect(response.destroyed).toBe(true);
  vi.useRealTimers();
});
