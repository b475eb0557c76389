import type { TlsSettings } from '@broomwagon/contracts';
import { Redis } from 'ioredis';

/**
 * Sends PING, and with `processId` also asks whether that process answers (another one may have taken the port).
 * Rejects when there is no answer within two seconds.
 */
export async function redisAnswers(
  url: string,
  { processId, tls }: { processId?: number; tls?: TlsSettings } = {},
): Promise<boolean> {
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  let failure: Error | undefined;
  redis.on('error', (error: Error) => (failure = error));
  try {
    await redis.connect();
    await redis.ping();
    if (processId === undefined) return true;
    return new RegExp(`^process_id:${processId}\\r?$`, 'm').test(await redis.info('server'));
  } catch (error) {
    throw failure ?? error;
  } finally {
    redis.disconnect();
  }
}
