import { BroomwagonError } from '@broomwagon/contracts';
import { connectRedis } from '../redis';
import { FilePayloadStore } from './file-payload-store';
import type { PayloadDriver } from './payload-ref';
import type { PayloadStore } from './payload-store';
import { RedisPayloadStore } from './redis-payload-store';

/** Quota of a job unless configured: 1 GiB. */
export const DEFAULT_PAYLOAD_QUOTA_BYTES = 1_073_741_824;

export interface PayloadStoreOptions {
  driver: PayloadDriver;
  /** Redis of the driver `redis`; may be the one that holds the state. */
  url: string;
  /** Folder of the driver `file`. */
  dir: string;
  /** First part of every key of the driver `redis`, e.g. `rollout`. */
  keyPrefix: string;
  /** Of each job; default 1 GiB. */
  quotaBytes?: number;
}

/** Opens the store that the configuration names. Every process of a system must be given the same one. */
export function openPayloadStore(options: PayloadStoreOptions): PayloadStore {
  const quotaBytes = options.quotaBytes ?? DEFAULT_PAYLOAD_QUOTA_BYTES;
  switch (options.driver) {
    case 'redis':
      return new RedisPayloadStore(connectRedis({ url: options.url }), options.keyPrefix, quotaBytes);
    case 'file':
      return new FilePayloadStore(options.dir, quotaBytes);
    default:
      throw new BroomwagonError('VALIDATION_FAILED', `No payload driver ${String(options.driver)}`);
  }
}
