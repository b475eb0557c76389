import { IsArray, IsIn, IsInt, IsOptional, IsString, Matches, Max, Min } from 'class-validator';
import { ConnectionsConfig } from './connections.config';
import { Env } from './env.decorator';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What all apps are configured by; each app extends it with its own fields. */
export class ServiceConfig extends ConnectionsConfig {
  @Env('POOLS', { description: 'pools served: * for all, or names separated by commas', kind: 'list' })
  @IsArray()
  @Matches(/^(\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$/, { each: true, message: 'must be *, or names of pools' })
  pools: string[] = ['*'];

  @Env('REPLY_PREFIXES', { description: 'first parts of the inboxes that replies may go to', kind: 'list' })
  @IsArray()
  @Matches(/^[\w-]+(\.[\w-]+)*$/, { each: true, message: 'must be first parts of subjects, as _INBOX' })
  replyPrefixes: string[] = ['_INBOX'];

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
