import type { HostAndPort } from '@broomwagon/contracts';
import { Redis, type RedisOptions } from 'ioredis';

/** How often the Sentinels are asked, milliseconds. */
const LOOK_MS = 1_000;

interface Sentinel {
  connection: Redis;
  /** What it names as the primary, `host:port`; undefined when it does not answer. */
  names: string | undefined;
  /** All it has named until now: Sentinels may have different names for one server. */
  hasNamed: Set<string>;
}

/**
 * Ends a connection to a server that most Sentinels no longer name as the primary; it opens again to the one they name.
 *
 * An old primary that comes back after a failover takes writes until the Sentinels make it a replica, 8 s later or
 * more (`sentinel.c`: after four periods of their messages), and then loses them. ioredis asks one Sentinel, which may
 * not know of the failover yet, and does not ask again while the connection works.
 */
export class PrimaryWatch {
  /** `host:port` of the server that the connection was opened to, as a Sentinel named it. */
  chosen: string | undefined;
  private readonly sentinels: Sentinel[];

  /** @param options of the connections to the Sentinels */
  constructor(
    hosts: readonly HostAndPort[],
    private readonly primaryName: string,
    options: RedisOptions,
  ) {
    this.sentinels = hosts.map(({ host, port }) => {
      const connection = new Redis({ ...options, host, port, enableReadyCheck: false, enableOfflineQueue: false });
      connection.on('error', () => undefined);
      return { connection, names: undefined, hasNamed: new Set() };
    });
  }

  /** Watches this connection until it is closed for good. */
  start(redis: Redis): void {
    const timer = setInterval(() => void this.look(redis), LOOK_MS).unref();
    redis.once('end', () => {
      clearInterval(timer);
      for (const { connection } of this.sentinels) connection.disconnect();
    });
  }

  private async look(redis: Redis): Promise<void> {
    await Promise.all(this.sentinels.map((sentinel) => this.ask(sentinel)));
    const { chosen, sentinels } = this;
    if (chosen === undefined || redis.status !== 'ready') return;
    const known = sentinels.filter(({ hasNamed }) => hasNamed.has(chosen));
    const asked = known.length > 0 ? known : sentinels;
    const others = asked.filter(({ names }) => names !== undefined && names !== chosen);
    if (others.length > asked.length / 2) redis.disconnect(true);
  }

  private async ask(sentinel: Sentinel): Promise<void> {
    const question = sentinel.connection.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.primaryName);
    const answer = await question.catch(() => undefined);
    sentinel.names = Array.isArray(answer) ? answer.join(':') : undefined;
    if (sentinel.names !== undefined) sentinel.hasNamed.add(sentinel.names);
  }
}
