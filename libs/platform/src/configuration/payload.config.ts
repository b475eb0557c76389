import { IsIn } from 'class-validator';
import { IsRedisAddress } from './connections.config';
import { Env } from './env.decorator';
import { ServiceConfig } from './service.config';

/** Configuration of an app that reads or writes payloads. All apps of a system need the same values. */
export class PayloadServiceConfig extends ServiceConfig {
  @Env('PAYLOAD_DRIVER', 'where payloads are stored: redis or file')
  @IsIn(['redis', 'file'])
  payloadDriver: 'redis' | 'file' = 'redis';

  @Env(
    'PAYLOAD_URL',
    'Redis of the payloads, in the form of REDIS_URL (the default); all other REDIS_* settings apply to both',
  )
  @IsRedisAddress()
  payloadUrl?: string;

  @Env('PAYLOAD_DIR', 'folder of the payloads of the file driver')
  payloadDir: string = './payloads';

  @Env('PAYLOAD_QUOTA_BYTES', 'maximum bytes of payloads of one job', { min: 1 })
  payloadQuotaBytes: number = 1_073_741_824;

  @Env(
    'PAYLOAD_MEMORY_PERCENT',
    'no payload is stored while Redis uses more than this share of its maxmemory; limits the payloads of all jobs',
    { min: 1, max: 90 },
  )
  payloadMemoryPercent: number = 75;

  @Env(
    'PAYLOAD_ORPHAN_AFTER_MS',
    'age at which a payload without an owner is removed; at twice this age at the latest',
    { min: 1_000 },
  )
  payloadOrphanAfterMs: number = 3_600_000;

  /** Options for `openPayloadStore` of libs/state. */
  payloadStoreOptions() {
    return {
      ...this.redisConfig(),
      ...(this.payloadUrl !== undefined && { url: this.payloadUrl }),
      driver: this.payloadDriver,
      dir: this.payloadDir,
      quotaBytes: this.payloadQuotaBytes,
      memoryPercent: this.payloadMemoryPercent,
    };
  }
}
