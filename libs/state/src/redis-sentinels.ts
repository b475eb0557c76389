import type { HostAndPort } from '@broomwagon/contracts';
import { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import { BoundedRedis } from './bounded-redis';

/** Pause between two checks, and time limit for an answer of a Sentinel, milliseconds. */
const LOOK_MS = 1_000;
/**
 * Maximum pause before a connection that returns to the same server is closed again, milliseconds. The pause doubles.
 */
const MAX_PAUSE_MS = 60_000;

/** Answer of a Sentinel: the primary as `host:port`, and the epoch of the failover that made it the primary. */
interface NamedPrimary {
  name: string;
  epoch: number;
}

/** The Sentinels, the name of the primary they monitor, and the options of both kinds of connections. */
export interface SentinelOptions extends Omit<RedisOptions, 'replyMapping'> {
  hosts: readonly HostAndPort[];
  primaryName: string;
  /** Addresses at which clients reach the servers, by the `host:port` that Sentinels announce. */
  addresses?: Record<string, HostAndPort>;
  /** Options of the connections to the Sentinels. */
  ofSentinels: RedisOptions;
}

/**
 * A connection to the primary that Sentinels name. A connection to an old primary is closed and opened again:
 * docs/decisions/0078. The failover detector of ioredis is off, because a message that arrives while a connection opens
 * would end the connection for ever.
 */
export class SentinelRedis extends BoundedRedis {
  private readonly primaryWatch: PrimaryWatch;

  /** @param timeoutMs a command without an answer for this long fails, milliseconds */
  constructor(timeoutMs: number, { hosts, primaryName, addresses, ofSentinels, ...settings }: SentinelOptions) {
    const watch = new PrimaryWatch(hosts, primaryName, ofSentinels);
    super(timeoutMs, {
      ...settings,
      sentinels: [...hosts],
      name: primaryName,
      // The last call of ioredis names the primary to which ioredis then connects.
      natMap: (announced: string) => {
        watch.chosen = announced;
        return addresses?.[announced] ?? null;
      },
    });
    this.primaryWatch = watch;
    watch.start(this);
  }

  override disconnect(reconnect = false): void {
    // The watch is stopped here, because ioredis emits no `end` for a connection that was about to open again.
    if (!reconnect) this.primaryWatch.stop();
    super.disconnect(reconnect);
  }
}

/**
 * Asks the Sentinels each second for the primary, and closes a connection to another server than the primary of the
 * latest failover.
 */
class PrimaryWatch {
  /** Server to which the connection was opened, as a Sentinel named it. */
  chosen: string | undefined;
  private readonly logger = new Logger(SentinelRedis.name);
  private readonly sentinels: Redis[];
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private isForbidden = false;
  private pauseMs = LOOK_MS;
  private closedAtMs = -Infinity;

  constructor(
    hosts: readonly HostAndPort[],
    private readonly primaryName: string,
    options: RedisOptions,
  ) {
    const settings = { ...options, commandTimeout: LOOK_MS, enableOfflineQueue: false };
    this.sentinels = hosts.map(({ host, port }) => new Redis({ ...settings, host, port }));
    for (const sentinel of this.sentinels) sentinel.on('error', () => undefined);
  }

  start(redis: Redis): void {
    redis.once('end', () => this.stop());
    const look = async () => {
      await this.look(redis);
      if (!this.isStopped) this.timer = setTimeout(() => void look(), LOOK_MS).unref();
    };
    void look();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    for (const sentinel of this.sentinels) sentinel.disconnect();
  }

  private async look(redis: Redis): Promise<void> {
    const { chosen } = this;
    const answers = (await Promise.all(this.sentinels.map((sentinel) => this.ask(sentinel)))).flat();
    // If the connection was opened again meanwhile, these answers may be older than the connection.
    if (redis.status !== 'ready' || answers.length === 0 || chosen !== this.chosen) return;
    const latest = Math.max(...answers.map(({ epoch }) => epoch));
    if (answers.some(({ epoch, name }) => epoch === latest && name === chosen)) {
      this.pauseMs = LOOK_MS;
    } else if (performance.now() >= this.closedAtMs + this.pauseMs) {
      this.closedAtMs = performance.now();
      this.pauseMs = Math.min(2 * this.pauseMs, MAX_PAUSE_MS);
      redis.disconnect(true);
    }
  }

  /** Primary that a Sentinel names; none when it does not answer, or knows no primary of this name. */
  private async ask(sentinel: Redis): Promise<NamedPrimary[]> {
    const ask = (what: string) => sentinel.call('SENTINEL', what, this.primaryName) as Promise<string[] | null>;
    try {
      // The epoch is asked first: the epoch of an earlier failover with the primary of a later failover does no harm.
      const [fields, address] = await Promise.all([ask('MASTER'), ask('GET-MASTER-ADDR-BY-NAME')]);
      const epoch = Number(fields?.[fields.indexOf('config-epoch') + 1]);
      return address && Number.isInteger(epoch) ? [{ name: address.join(':'), epoch }] : [];
    } catch (error) {
      if (!this.isForbidden && String(error).includes('NOPERM')) {
        this.isForbidden = true;
        this.logger.warn('An old primary cannot be detected: grant REDIS_SENTINEL_USER the command SENTINEL MASTER');
      }
      return [];
    }
  }
}
