import { eventSubject, type PoolName } from '@broomwagon/contracts';
import type { MessagingConnection } from '@broomwagon/messaging';

/**
 * Passes every event of a pool to `onLine` as one line of JSON, as it is published:
 * `{type, pool, atMs, sequence, ...}`. The laboratory replays such lines.
 * @returns function that ends the recording, after all events published before
 */
export function recordEvents(
  connection: MessagingConnection,
  pool: PoolName,
  onLine: (line: string) => void,
): () => Promise<void> {
  const subscription = connection.nats.subscribe(eventSubject(pool, '>'), {
    callback: (error, message) => {
      if (error === null) onLine(message.string());
    },
  });
  return async () => {
    await connection.nats.flush();
    await subscription.drain();
  };
}
