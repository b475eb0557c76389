import { BroomwagonError } from '@broomwagon/contracts';
import { connectRedis, type RedisConnectionOptions } from '../redis';
import { checkRedisAccess } from '../redis-access';
import { RedisLink } from '../redis-link';
import { RedisMemory } from '../redis-memory';
import { FilePayloadStore } from './file-payload-store';
import type { PayloadDriver } from './payload-ref';
import type { PayloadStore } from './payload-store';
import { RedisPayloadStore } from './redis-payload-store';

/** Quota of a job unless configured: 1 GiB. */
export const DEFAULT_PAYLOAD_QUOTA_BYTES = 1_073_741_824;

/** Payloads are refused well before other new work, which is refused at 90 %, so that rounds can end. */
export const DEFAULT_PAYLOAD_MEMORY_PERCENT = 75;

/** Options of a payload store. The connection is for the driver `redis`; its Redis may also hold the state. */
export interface PayloadStoreOptions extends RedisConnectionOptions {
  driver: PayloadDriver;
  /** Folder of the driver `file`. */
  dir: string;
  /** First part of every key of the driver `redis`, e.g. `rollout`. */
  keyPrefix: string;
  /** Quota of each job; default 1 GiB. */
  quotaBytes?: number;
  /** For the driver `redis`: no payload is stored while its Redis uses more of its `maxmemory`, percent. Default 75. */
  memoryPercent?: number;
  /** Called when the Redis of the payloads has refused the credentials of the environment for a long time. */
  requestRestart?: (reason: Error) => void;
}

/**
 * Opens the configured store. Every process of a system must use the same store.
 * @throws BroomwagonError UNAVAILABLE when its Redis refuses this client, or its folder cannot be created
 */
export async function openPayloadStore(options: PayloadStoreOptions): Promise<PayloadStore> {
  const quotaBytes = options.quotaBytes ?? DEFAULT_PAYLOAD_QUOTA_BYTES;
  switch (options.driver) {
    case 'redis':
      return openInRedis(options, quotaBytes);
    case 'file':
      return FilePayloadStore.open(options.dir, quotaBytes);
    default:
      throw new BroomwagonError('VALIDATION_FAILED', `Unknown payload driver ${String(options.driver)}`);
  }
}

async function openInRedis(options: PayloadStoreOptions, quotaBytes: number): Promise<PayloadStore> {
  const redis = connectRedis(options);
  const link = new RedisLink(redis, (reason) => options.requestRestart?.(reason), 'payloads');
  try {
    await checkRedisAccess(redis, `${options.keyPrefix}:payload`);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  const share = (options.memoryPercent ?? DEFAULT_PAYLOAD_MEMORY_PERCENT) / 100;
  const memory = new RedisMemory(redis, 'Redis of the payloads', undefined, share);
  memory.start();
  return new RedisPayloadStore(redis, options.keyPrefix, quotaBytes, memory, link);
}
