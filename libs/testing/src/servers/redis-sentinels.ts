import { Redis } from 'ioredis';
import { findServers } from '../provision/find-servers';
import { waitUntil } from '../wait-until';
import { startServer, type ServerRecipe } from './private-server';
import { redisRecipe, startRedis } from './redis-server';
import type { ServerHandle, ServerOptions } from './server-handle';

const PRIMARY_NAME = 'main';
/** A primary that is silent for so long is down. */
const DOWN_AFTER_MS = 2_000;
const READY_TIMEOUT_MS = 60_000;
const SENTINELS = 3;

/** A primary with two replicas, watched by three Sentinels, on free ports of 127.0.0.1. */
export class RedisSentinels {
  private constructor(
    private readonly servers: ServerHandle[],
    private readonly sentinels: ServerHandle[],
  ) {}

  /**
   * @throws BroomwagonError UNAVAILABLE when there is no Redis to start here, TIMEOUT when they do not come together
   */
  static async start(): Promise<RedisSentinels> {
    const found = (await findServers(['redis'], {})).get('redis')!;
    const group = new RedisSentinels([], []);
    try {
      const primary = await startRedis();
      group.servers.push(primary);
      const replica = `replicaof 127.0.0.1 ${primary.port}\nrepl-diskless-sync-delay 0`;
      for (let count = 0; count < 2; count += 1) group.servers.push(await startRedis({ configuration: replica }));
      for (let count = 0; count < SENTINELS; count += 1) {
        group.sentinels.push(await startServer(sentinelRecipe, found, { configuration: watch(primary.port) }));
      }
      await group.untilWhole();
      return group;
    } catch (error) {
      await group.stop();
      throw error;
    }
  }

  /** As REDIS_URL takes it. */
  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`;
  }

  /** Kills the primary, and returns when a replica has taken its place and the dead one is its replica. */
  async failOver(): Promise<void> {
    const port = await this.primaryPort();
    const dead = this.servers.find((server) => server.port === port)!;
    await dead.kill();
    await waitUntil(async () => (await this.primaryPort()) !== port, {
      what: 'a replica to take over',
      timeoutMs: READY_TIMEOUT_MS,
    });
    await dead.restart();
    await this.untilWhole();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  private primaryPort(): Promise<number> {
    return asked(this.sentinels[0]!, async (sentinel) => {
      const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)) as [string, string];
      return Number(port);
    });
  }

  /** One primary with two replicas, which have all it has, and Sentinels that know them and each other. */
  private untilWhole(): Promise<void> {
    const isWhole = async () => {
      const known = await Promise.all(
        this.sentinels.map((one) => asked(one, (sentinel) => sentinel.call('SENTINEL', 'MASTER', PRIMARY_NAME))),
      );
      const links = await Promise.all(this.servers.map((one) => asked(one, (redis) => redis.info('replication'))));
      return (
        known.every((answer) => {
          const text = (answer as string[]).join(' ');
          return text.includes('flags master ') && / num-slaves 2 num-other-sentinels 2 /.test(text);
        }) &&
        links.filter((link) => link.includes('role:master')).length === 1 &&
        links.filter((link) => link.includes('master_link_status:up')).length === 2
      );
    };
    return waitUntil(() => isWhole().catch(() => false), {
      what: 'the Sentinels to agree',
      timeoutMs: READY_TIMEOUT_MS,
    });
  }
}

function sentinelRecipe(options: ServerOptions): ServerRecipe {
  return {
    ...redisRecipe(options),
    configuration: ({ port }) => `bind 127.0.0.1\nport ${port}\ndaemonize no`,
    commandArguments: (file) => [file, '--sentinel'],
  };
}

function watch(port: number): string {
  return [
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${port} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${PRIMARY_NAME} 10000`,
    `sentinel parallel-syncs ${PRIMARY_NAME} 2`,
  ].join('\n');
}

async function asked<T>(server: ServerHandle, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(server.url, { commandTimeout: 1_000, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}
