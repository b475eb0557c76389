import { IsArray, IsIn, IsInt, IsOptional, IsString, Matches, Max, Min } from 'class-validator';
import { ConnectionsConfig } from './connections.config';
import { Env } from './env.decorator';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What all apps are configured by; each app extends it with its own fields. */
export class ServiceConfig extends ConnectionsConfig {
  @Env('POOLS', { description: 'pools to serve: * for all, or names separated by commas', kind: 'list' })
  @IsArray()
  @Matches(/^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$/, { each: true, message: 'must be *, or pool names' })
  pools: string[] = ['*'];

  @Env('REPLY_PREFIXES', { description: 'prefixes of the inboxes to which replies may be sent', kind: 'list' })
  @IsArray()
  @Matches(/^[\w-]+(\.[\w-]+)*$/, { each: true, message: 'must be subject prefixes, as _INBOX' })
  replyPrefixes: string[] = ['_INBOX'];

  @Env('HTTP_HOST', { description: 'address of the health and metrics routes' })
  @IsString()
  httpHost: string = '127.0.0.1';

  @Env('HTTP_PORT', { description: 'port of the health and metrics routes; 0: any free port' })
  @IsInt()
  @Min(0)
  @Max(65_535)
  httpPort: number = 0;

  @Env('LOG_LEVEL', { description: `one of ${LOG_LEVELS.join(', ')}` })
  @IsIn(LOG_LEVELS)
  logLevel: string = 'info';

  @Env('MAX_IN_FLIGHT', { description: 'requests handled at the same time; more are answered OVERLOADED' })
  @IsInt()
  @Min(1)
  maxInFlight: number = 1_024;

  @Env('START_DEADLINE_MS', { description: 'how long NATS may be unavailable at start', kind: 'duration' })
  @IsInt()
  @Min(0)
  startDeadlineMs: number = 15_000;

  @Env('SHUTDOWN_TIMEOUT_MS', { description: 'maximum duration of a shutdown', kind: 'duration' })
  @IsInt()
  @Min(0)
  shutdownTimeoutMs: number = 25_000;

  @Env('READY_FILE', { description: 'file to which {port, pid} is written when the service listens' })
  @IsOptional()
  @IsString()
  readyFile?: string;

  /** The pools in the form the transport takes. */
  servedPools(): '*' | string[] {
    return this.pools.includes('*') ? '*' : this.pools;
  }
}
