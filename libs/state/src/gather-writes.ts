import type { Redis } from 'ioredis';

/**
 * Sends all commands of one turn of the event loop by one write. A write, and a read of Redis for it, cost more than
 * most commands.
 */
export function gatherWrites(redis: Redis): void {
  const { stream, status } = redis;
  // Commands that open a connection wait for one another.
  if (status !== 'ready' || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
