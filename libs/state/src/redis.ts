import { Redis, type RedisOptions } from 'ioredis';

export interface RedisConnectionOptions {
  /** redis:// or rediss:// URL; may hold user and password. */
  url: string;
  /** A command without an answer for this long fails, milliseconds. */
  commandTimeoutMs?: number;
}

/**
 * Opens a connection that reconnects for ever but never holds a command for ever: every caller gets an
 * answer or UNAVAILABLE, and repeating a transition is safe.
 */
export function connectRedis(options: RedisConnectionOptions): Redis {
  const settings: RedisOptions = {
    commandTimeout: options.commandTimeoutMs ?? 2_000,
    connectTimeout: 5_000,
    maxRetriesPerRequest: 3,
    enableAutoPipelining: false,
    retryStrategy: (attempt) => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  };
  const redis = new Redis(options.url, settings);
  // Its commands fail, and readiness says so. Without a listener ioredis prints each error of a connection it opens again.
  redis.on('error', () => undefined);
  return redis;
}
