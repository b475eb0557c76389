import {
  BroomwagonError,
  type HostAndPort,
  parseRedisAddress,
  type RedisAddress,
  type TlsSettings,
} from '@broomwagon/contracts';
import type { RedisOptions } from 'ioredis';
import { BoundedRedis } from './bounded-redis';
import { BoundedCluster, type RedisClient } from './redis-cluster';
import { SentinelRedis } from './redis-sentinels';

export interface RedisConnectionOptions {
  /** Address in one of the `REDIS_ADDRESS_FORMS`. May contain user and password; `rediss` asks for TLS. */
  url: string;
  /** Settings of TLS, used when the address asks for TLS. */
  tls?: TlsSettings;
  /** User for Sentinels with a password. User and password in the address are for the primary. */
  sentinelUsername?: string;
  sentinelPassword?: string;
  /** Addresses at which clients reach servers, by the `host:port` that nodes of a Cluster, or Sentinels, announce. */
  natMap?: Record<string, HostAndPort>;
  /** A command without an answer for this long fails, milliseconds. Default 2,000. */
  commandTimeoutMs?: number;
  /**
   * Silence after which a connection is cut and dialed again while commands wait for answers, and time limit of each
   * command that opens a connection, milliseconds. Default 5,000; never shorter than `commandTimeoutMs`.
   */
  silenceMs?: number;
}

const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;
const DEFAULT_SILENCE_MS = 5_000;
/** How often a Cluster is asked for changes that no redirection has shown, milliseconds. */
const SLOTS_REFRESH_MS = 5_000;

/**
 * Opens a connection that reconnects for ever, but fails every command without an answer in time: each caller gets an
 * answer or UNAVAILABLE, and a repeated transition is safe.
 */
export function connectRedis(options: RedisConnectionOptions): RedisClient {
  const address = parseRedisAddress(options.url);
  const redis =
    address === undefined || address.kind === 'server'
      ? new BoundedRedis(
          getCommandTimeoutMs(options),
          buildSettings(options, options.url.startsWith('rediss:')),
          options.url,
        )
      : address.kind === 'cluster'
        ? connectCluster(options, address)
        : connectBySentinels(options, address);
  // While the connection is down its commands fail, and readiness reports the failure. Without a listener ioredis
  // prints each error of a connection that it opens again.
  redis.on('error', () => undefined);
  return redis;
}

function getCommandTimeoutMs(options: RedisConnectionOptions): number {
  return options.commandTimeoutMs ?? DEFAULT_COMMAND_TIMEOUT_MS;
}

function buildSettings(options: RedisConnectionOptions, usesTls: boolean) {
  const { tls } = options;
  const silenceMs = Math.max(options.silenceMs ?? DEFAULT_SILENCE_MS, getCommandTimeoutMs(options));
  return {
    // The object is not copied, because each connection reads its properties anew from their files.
    ...(usesTls ? { tls: tls ?? {} } : {}),
    // Limit of the commands that open a connection, such as AUTH. With the limit of other commands, a server that is
    // slow to answer new connections would never be connected again. BoundedRedis and BoundedCluster limit the other
    // commands.
    commandTimeout: silenceMs,
    // An unreachable host sends no RST, and TCP would retry for a quarter of an hour.
    socketTimeout: silenceMs,
    // After a failover the old primary may keep the connection, as a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    connectTimeout: 5_000,
    maxRetriesPerRequest: 3,
    enableAutoPipelining: false,
    retryStrategy,
  } satisfies RedisOptions;
}

/** Pause before a dial, milliseconds, with jitter: the services of a fleet lose Redis at the same time. */
function retryStrategy(attempt: number): number {
  return Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)) * (0.5 + Math.random() / 2);
}

function connectBySentinels(options: RedisConnectionOptions, address: RedisAddress): SentinelRedis {
  const { hosts, primaryName, usesTls, username, password } = address;
  const { sentinelUsername, sentinelPassword } = options;
  const settings = buildSettings(options, usesTls);
  return new SentinelRedis(getCommandTimeoutMs(options), {
    ...settings,
    hosts,
    primaryName: primaryName!,
    addresses: options.natMap,
    username,
    password,
    sentinelUsername,
    sentinelPassword,
    sentinelCommandTimeout: getCommandTimeoutMs(options),
    sentinelRetryStrategy: retryStrategy,
    ...(usesTls ? { enableTLSForSentinelMode: true, sentinelTLS: settings.tls } : {}),
    ofSentinels: { ...settings, enableReadyCheck: false, username: sentinelUsername, password: sentinelPassword },
  });
}

function connectCluster(options: RedisConnectionOptions, address: RedisAddress): BoundedCluster {
  const { hosts, usesTls, username, password } = address;
  const { retryStrategy: clusterRetryStrategy, ...settings } = buildSettings(options, usesTls);
  return new BoundedCluster(hosts, getCommandTimeoutMs(options), {
    redisOptions: { ...settings, username, password },
    clusterRetryStrategy,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    slotsRefreshTimeout: settings.commandTimeout,
    natMap: options.natMap,
    // Host names are not resolved to addresses, because certificates are for names.
    ...(usesTls ? { dnsLookup: (host: string, found: (error: null, host: string) => void) => found(null, host) } : {}),
  });
}

/** Time of a Redis server, milliseconds since 1970. @throws Error of Redis */
export async function readTime(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** The answer to a command that is no transition. @throws BroomwagonError UNAVAILABLE */
export async function awaitAnswer<T>(answer: Promise<T>, from = 'Redis'): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new BroomwagonError('UNAVAILABLE', `${from} does not answer: ${(cause as Error).message}`, { cause });
  }
}
