import type { HostAndPort } from '@broomwagon/contracts';
import { Redis, type RedisOptions } from 'ioredis';

/** How often the Sentinels are asked, milliseconds. */
const LOOK_MS = 1_000;
/** Between two closes of one connection that comes back to the same server, milliseconds; it doubles up to this. */
const MOST_PAUSE_MS = 60_000;

/** What a Sentinel answers: the primary, as `host:port`, and the epoch of the failover that made it one. */
interface NamedPrimary {
  name: string;
  epoch: number;
}

/** How Sentinels are reached, and what they watch. */
export interface SentinelOptions extends RedisOptions {
  hosts: readonly HostAndPort[];
  primaryName: string;
  /** By `host:port` as Sentinels announce a server: where we reach it. */
  addresses?: Record<string, HostAndPort>;
  /** Of the connections to the Sentinels. */
  ofSentinels: RedisOptions;
}

/**
 * A connection to the primary that Sentinels name. It closes and opens again when one of them names another primary,
 * of a later failover.
 *
 * An old primary that comes back takes writes until the Sentinels make it a replica, 8 s later or more (`sentinel.c`:
 * after four periods of their messages), and then these writes are lost. ioredis asks one Sentinel, which may not know
 * of the failover yet, and does not ask again while the connection works. Its failover detector ends a connection for
 * ever when the message comes while it opens.
 */
export class SentinelRedis extends Redis {
  private readonly primaryWatch: PrimaryWatch;

  constructor({ hosts, primaryName, addresses, ofSentinels, ...settings }: SentinelOptions) {
    const watch = new PrimaryWatch(hosts, primaryName, ofSentinels);
    super({
      ...settings,
      sentinels: [...hosts],
      name: primaryName,
      // The last call before it connects is for the primary.
      natMap: (announced) => {
        watch.chosen = announced;
        return addresses?.[announced] ?? null;
      },
    });
    this.primaryWatch = watch;
    watch.start(this);
  }

  override disconnect(reconnect = false): void {
    // ioredis emits no `end` for a connection that was about to open again.
    if (!reconnect) this.primaryWatch.stop();
    super.disconnect(reconnect);
  }
}

class PrimaryWatch {
  /** The server that the connection was opened to, as a Sentinel named it. */
  chosen: string | undefined;
  private readonly sentinels: Redis[];
  private readonly answers = new Map<Redis, NamedPrimary>();
  private timer: NodeJS.Timeout | undefined;
  private pauseMs = LOOK_MS;
  private closedAtMs = -Infinity;

  constructor(
    hosts: readonly HostAndPort[],
    private readonly primaryName: string,
    options: RedisOptions,
  ) {
    this.sentinels = hosts.map(({ host, port }) => new Redis({ ...options, host, port, enableOfflineQueue: false }));
    for (const sentinel of this.sentinels) sentinel.on('error', () => undefined);
  }

  start(redis: Redis): void {
    this.timer = setInterval(() => {
      for (const sentinel of this.sentinels) void this.ask(sentinel).then(() => this.compare(redis));
    }, LOOK_MS).unref();
    redis.once('end', () => this.stop());
  }

  stop(): void {
    clearInterval(this.timer);
    for (const sentinel of this.sentinels) sentinel.disconnect();
  }

  private async ask(sentinel: Redis): Promise<void> {
    const ask = (what: string) => sentinel.call('SENTINEL', what, this.primaryName) as Promise<string[] | null>;
    try {
      // In this order: a Sentinel names the new primary when it has the new epoch.
      const [address, fields] = await Promise.all([ask('GET-MASTER-ADDR-BY-NAME'), ask('MASTER')]);
      const epoch = Number(fields?.[fields.indexOf('config-epoch') + 1]);
      if (!address || !Number.isInteger(epoch)) throw new Error('It knows no such primary');
      this.answers.set(sentinel, { name: address.join(':'), epoch });
    } catch {
      this.answers.delete(sentinel);
    }
  }

  private compare(redis: Redis): void {
    const answers = [...this.answers.values()];
    const latest = Math.max(...answers.map(({ epoch }) => epoch));
    const named = answers.filter(({ epoch }) => epoch === latest).map(({ name }) => name);
    if (redis.status !== 'ready' || named.length === 0) return;
    if (named.includes(this.chosen!)) {
      this.pauseMs = LOOK_MS;
    } else if (performance.now() >= this.closedAtMs + this.pauseMs) {
      this.closedAtMs = performance.now();
      this.pauseMs = Math.min(2 * this.pauseMs, MOST_PAUSE_MS);
      redis.disconnect(true);
    }
  }
}
