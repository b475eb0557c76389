import type { AdminClient } from '@broomwagon/admin-client';
import { expect, it, vi } from 'vitest';
import { EventStore } from './event-store';

it('shows an error until the stream is open again, also before the next event', async () => {
  vi.useFakeTimers();
  const problem = { code: 'FORBIDDEN', detail: 'no', retryable: false };
  const replies = [
    { error: problem, response: { ok: false, status: 403, url: '' } },
    { data: new ReadableStream<Uint8Array>(), response: { ok: true, status: 200, url: '' } },
  ];
  const client = { GET: () => Promise.resolve(replies.shift()) } as unknown as AdminClient;
  const store = new EventStore(client, 'p');
  let changes = 0;
  store.listen(() => (changes += 1));
  store.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(store.link).toMatchObject({ state: 'broken', failure: { error: { code: 'FORBIDDEN' } } });
  expect(changes).toBe(1);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(replies).toEqual([]);
  expect(store.link).toEqual({ state: 'open' });
  expect(changes).toBe(2);
  store.stop();
  vi.useRealTimers();
});
