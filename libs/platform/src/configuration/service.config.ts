import { IsArray, IsIn, IsInt, IsOptional, IsString, Matches, Max, Min } from 'class-validator';
import { Env } from './env.decorator';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What all apps are configured by; each app extends it with its own fields. */
export class ServiceConfig {
  @Env('NATS_URL', { description: 'NATS addresses, separated by commas' })
  @Matches(/^(nats|tls|ws|wss):\/\/\S+$/, { message: 'must be an address as nats://host:4222' })
  natsUrl: string = 'nats://127.0.0.1:4222';

  @Env('NATS_USER', { description: 'NATS user' })
  @IsOptional()
  @IsString()
  natsUser?: string;

  @Env('NATS_PASSWORD', { description: 'NATS password', secret: true })
  @IsOptional()
  @IsString()
  natsPassword?: string;

  @Env('NATS_TOKEN', { description: 'NATS token', secret: true })
  @IsOptional()
  @IsString()
  natsToken?: string;

  @Env('NATS_NKEY_SEED', { description: 'seed of a NATS NKey', secret: true })
  @IsOptional()
  @IsString()
  natsNkeySeed?: string;

  @Env('NATS_CREDS', { description: 'path of a NATS credentials file' })
  @IsOptional()
  @IsString()
  natsCredsFile?: string;

  @Env('REDIS_URL', { description: 'Redis or Valkey address' })
  @Matches(/^rediss?:\/\/\S+$/, { message: 'must be an address as redis://host:6379' })
  redisUrl: string = 'redis://127.0.0.1:6379';

  @Env('REDIS_KEY_PREFIX', { description: 'first part of all keys in Redis' })
  @Matches(/^[A-Za-z0-9_-]{1,32}$/, { message: 'must be 1 to 32 letters, digits, _ or -' })
  redisKeyPrefix: string = 'rollout';

  @Env('POOLS', { description: 'pools served: * for all, or names separated by commas', kind: 'list' })
  @IsArray()
  @Matches(/^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$/, { each: true, message: 'must be *, or names of pools' })
  pools: string[] = ['*'];

  @Env('HTTP_HOST', { description: 'address the health and metrics routes listen on' })
  @IsString()
  httpHost: string = '127.0.0.1';

  @Env('HTTP_PORT', { description: 'port of the health and metrics routes; 0 is any free one' })
  @IsInt()
  @Min(0)
  @Max(65_535)
  httpPort: number = 0;

  @Env('LOG_LEVEL', { description: `one of ${LOG_LEVELS.join(', ')}` })
  @IsIn(LOG_LEVELS)
  logLevel: string = 'info';

  @Env('MAX_IN_FLIGHT', { description: 'requests handled at once; more are answered OVERLOADED' })
  @IsInt()
  @Min(1)
  maxInFlight: number = 1_024;

  @Env('START_DEADLINE_MS', { description: 'how long NATS may be away at start', kind: 'duration' })
  @IsInt()
  @Min(0)
  startDeadlineMs: number = 15_000;

  @Env('SHUTDOWN_TIMEOUT_MS', { description: 'a shutdown takes no longer', kind: 'duration' })
  @IsInt()
  @Min(0)
  shutdownTimeoutMs: number = 25_000;

  @Env('READY_FILE', { description: 'a file to write {port, pid} to when the service listens' })
  @IsOptional()
  @IsString()
  readyFile?: string;

  /** The pools in the form the transport takes. */
  servedPools(): '*' | string[] {
    return this.pools.includes('*') ? '*' : this.pools;
  }
}
