import { eventSubject, type PoolName } from '@broomwagon/contracts';
import type { MessagingConnection } from '../connection';

/**
 * Hands on every event of a pool as one line of JSON, as it is published: `{type, pool, atMs, sequence, ...}`. Lines
 * that hold the same events are what the laboratory replays.
 * @returns ends it, once everything that was published before has been handed on
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
