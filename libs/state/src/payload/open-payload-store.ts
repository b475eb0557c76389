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

/** Payloads stop well before other new work does, at 90 %: rounds must be able to end. */
export const DEFAULT_PAYLOAD_MEMORY_PERCENT = 75;

/** The connection is for the driver `redis`; it may be to the one that holds the state. */
export interface PayloadStoreOptions extends RedisConnectionOptions {
  driver: PayloadDriver;
  /** Folder of the driver `file`. */
  dir: string;
  /** First part of every key of the driver `redis`, e.g. `rollout`. */
  keyPrefix: string;
  /** Of each job; default 1 GiB. */
  quotaBytes?: number;
  /** Of the driver `redis`: no payload is stored while that Redis uses more of its `maxmemory`. Default 75. */
  memoryPercent?: number;
  /** Called when that Redis has refused credentials of the environment for long. */
  requestRestart?: (reason: Error) => void;
}

/**
 * Opens the store that the configuration names. Every process of a system must be given the same one.
 * @throws BroomwagonError UNAVAILABLE when its Redis refuses us, or its folder cannot be made
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
