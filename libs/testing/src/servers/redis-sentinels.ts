import { Redis } from 'ioredis';
import { freePort } from '../free-port';
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

/** Access of clients; with `tls`, servers and Sentinels use TLS for all connections but the test's own. */
export interface SentinelAccess {
  /** Password of the servers. */
  password: string;
  sentinelPassword: string;
  /** Files. The certificate is its own CA. */
  tls: { certificate: string; key: string };
}

/** A server or a Sentinel, with the port that it announces. */
interface Member {
  server: ServerHandle;
  port: number;
}

/** A primary with two replicas, watched by three Sentinels, on free ports of 127.0.0.1. */
export class RedisSentinels {
  private readonly servers: Member[] = [];
  private readonly sentinels: Member[] = [];

  private constructor(private readonly access: SentinelAccess | undefined) {}

  /**
   * @param ofPrimary further lines of the configuration of the first primary
   * @throws BroomwagonError UNAVAILABLE when there is no Redis to start here, TIMEOUT when they do not come together
   */
  static async start(access?: SentinelAccess, ofPrimary: readonly string[] = []): Promise<RedisSentinels> {
    const found = (await findServers(['redis'], {})).get('redis')!;
    const group = new RedisSentinels(access);
    const { password, sentinelPassword } = access ?? {};
    try {
      const masterAuth = password === undefined ? [] : [`masterauth ${password}`];
      const primary = await group.add(group.servers, [...masterAuth, ...ofPrimary], (configuration) =>
        startRedis({ password, configuration }),
      );
      const replica = [...masterAuth, `replicaof 127.0.0.1 ${primary.port}`, 'repl-diskless-sync-delay 0'];
      for (let count = 0; count < 2; count += 1) {
        await group.add(group.servers, replica, (configuration) => startRedis({ password, configuration }));
      }
      for (let count = 0; count < SENTINELS; count += 1) {
        await group.add(group.sentinels, watch(primary.port, access), (configuration) =>
          startServer(sentinelRecipe, found, { password: sentinelPassword, configuration }),
        );
      }
      await group.untilWhole();
      return group;
    } catch (error) {
      await group.stop();
      throw error;
    }
  }

  /** Addresses of the Sentinels, in the form of REDIS_URL. */
  get url(): string {
    const scheme = this.access === undefined ? 'redis+sentinel://' : `rediss+sentinel://:${this.access.password}@`;
    return `${scheme}${this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`;
  }

  /** Kills the primary, and returns when a replica has taken its place and the dead one is its replica. */
  async failOver(): Promise<void> {
    await this.replace(
      (primary) => primary.kill(),
      (primary) => primary.restart(),
    );
    await this.untilWhole();
  }

  /** Pauses the primary until a replica has taken its place, then resumes it: it still acts as a primary. */
  failOverHung(): Promise<void> {
    return this.replace(
      (primary) => primary.pause(),
      (primary) => primary.resume(),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map(({ server }) => server.stop()));
  }

  private async add(
    members: Member[],
    lines: readonly string[],
    start: (configuration: string) => Promise<ServerHandle>,
  ): Promise<Member> {
    const tlsPort = this.access && (await freePort());
    const tls = this.access === undefined ? [] : tlsLines(this.access.tls, tlsPort!);
    const server = await start([...tls, ...lines].join('\n'));
    const member = { server, port: tlsPort ?? server.port };
    members.push(member);
    return member;
  }

  private async replace(
    fail: (primary: ServerHandle) => Promise<void>,
    comeBack: (primary: ServerHandle) => Promise<void>,
  ): Promise<void> {
    const port = await this.primaryPort();
    const primary = this.servers.find((one) => one.port === port)!.server;
    await fail(primary);
    await waitUntil(async () => (await this.primaryPort()) !== port, {
      what: 'a replica to take over',
      timeoutMs: READY_TIMEOUT_MS,
    });
    await comeBack(primary);
  }

  private primaryPort(): Promise<number> {
    return asked(this.sentinels[0]!.server, async (sentinel) => {
      const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)) as [string, string];
      return Number(port);
    });
  }

  /** One primary with two replicas, which have all it has, and Sentinels that know them and each other. */
  private untilWhole(): Promise<void> {
    const isWhole = async () => {
      const known = await Promise.all(
        this.sentinels.map(({ server }) =>
          asked(server, (sentinel) => sentinel.call('SENTINEL', 'MASTER', PRIMARY_NAME)),
        ),
      );
      const links = await Promise.all(
        this.servers.map(({ server }) => asked(server, (redis) => redis.info('replication'))),
      );
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
  const { password } = options;
  return {
    ...redisRecipe(options),
    configuration: ({ port }) =>
      [
        'bind 127.0.0.1',
        `port ${port}`,
        'daemonize no',
        ...(password === undefined ? [] : [`requirepass ${password}`, `sentinel sentinel-pass ${password}`]),
      ].join('\n'),
    commandArguments: (file) => [file, '--sentinel'],
  };
}

function watch(port: number, access: SentinelAccess | undefined): string[] {
  return [
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${port} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${PRIMARY_NAME} 10000`,
    `sentinel parallel-syncs ${PRIMARY_NAME} 2`,
    ...(access === undefined ? [] : [`sentinel auth-pass ${PRIMARY_NAME} ${access.password}`]),
  ];
}

function tlsLines({ certificate, key }: SentinelAccess['tls'], port: number): string[] {
  return [
    `tls-port ${port}`,
    `tls-cert-file "${certificate}"`,
    `tls-key-file "${key}"`,
    `tls-ca-cert-file "${certificate}"`,
    'tls-auth-clients no',
    'tls-replication yes',
  ];
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
