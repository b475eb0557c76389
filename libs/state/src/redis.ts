import { BroomwagonError, type TlsSettings } from '@broomwagon/contracts';
import { Redis, type RedisOptions } from 'ioredis';

export interface RedisConnectionOptions {
  /** redis:// or rediss:// URL; may hold user and password. */
  url: string;
  /** How TLS is spoken, for `rediss://`. */
  tls?: TlsSettings;
  /** A command without an answer for this long fails, milliseconds. */
  commandTimeoutMs?: number;
}

/** So many commands' time without a byte, while commands wait for answers, and the link counts as dead. */
const SILENT_COMMANDS = 3;

/**
 * Opens a connection that reconnects for ever but never holds a command for ever: every caller gets an
 * answer or UNAVAILABLE, and repeating a transition is safe.
 */
export function connectRedis(options: RedisConnectionOptions): Redis {
  const commandTimeoutMs = options.commandTimeoutMs ?? 2_000;
  const settings: RedisOptions = {
    ...(options.url.startsWith('rediss://') ? { tls: { ...options.tls } } : {}),
    commandTimeout: commandTimeoutMs,
    // A host that is gone says no word, and TCP would go on trying it for a quarter of an hour.
    socketTimeout: SILENT_COMMANDS * commandTimeoutMs,
    // After a failover the old primary may keep the connection, as a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
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

/** The answer to a command that is no script. @throws BroomwagonError UNAVAILABLE */
export async function answerOf<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new BroomwagonError('UNAVAILABLE', `Redis does not answer: ${(cause as Error).message}`, { cause });
  }
}
