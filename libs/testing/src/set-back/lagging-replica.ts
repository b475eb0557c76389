import { Redis } from 'ioredis';
import { startRedis } from '../servers/redis-server';
import type { ServerHandle } from '../servers/server-handle';
import { waitUntil } from '../wait-until';
import { HeldLink } from './held-link';
import { nowMs, type RedisHistory } from './redis-history';

/** A silent link is no reason for a new sync. */
const CONFIGURATION = 'appendonly no\nrepl-timeout 3600\nrepl-diskless-sync-delay 0';

/** A Redis that dies while its replica, which takes its place, has not received the last writes. */
export class LaggingReplica implements RedisHistory {
  private constructor(
    readonly url: string,
    private readonly port: number,
    private primary: ServerHandle,
    private replica: Replica,
  ) {}

  static async start(): Promise<LaggingReplica> {
    const primary = await startRedis({ configuration: CONFIGURATION });
    return new LaggingReplica(primary.url, primary.port, primary, await Replica.start(primary.port));
  }

  async setBack(lostMs: number): Promise<number> {
    const setBackMs = nowMs();
    await this.primary.kill();
    const lostSinceMs = await this.replica.promote(this.port, setBackMs - lostMs);
    await this.primary.stop();
    this.primary = this.replica.server;
    this.replica = await Replica.start(this.port);
    return setBackMs - lostSinceMs;
  }

  async stop(): Promise<void> {
    await this.replica.stop();
    await this.primary.stop();
  }
}

/** A replica that has the first copy of everything; later writes are kept from it until its promotion. */
class Replica {
  private constructor(
    readonly server: ServerHandle,
    private readonly link: HeldLink,
    private readonly client: Redis,
  ) {
    client.on('error', () => undefined);
  }

  static async start(primaryPort: number): Promise<Replica> {
    const link = await HeldLink.start(primaryPort);
    const server = await startRedis({ configuration: `${CONFIGURATION}\nreplicaof 127.0.0.1 ${link.port}` });
    const replica = new Replica(server, link, new Redis(server.url));
    await replica.untilLinkIs('up');
    link.hold();
    return replica;
  }

  /** Makes the replica the primary under that port, with all writes until that moment. Returns when its data end. */
  async promote(port: number, momentMs: number): Promise<number> {
    const endMs = this.link.end(momentMs);
    // A replica has read everything once it has seen the end of the link.
    await this.untilLinkIs('down');
    await this.client.replicaof('NO', 'ONE');
    await this.client.config('SET', 'port', port);
    this.client.disconnect();
    return endMs;
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    this.link.end(0);
    await this.server.stop();
  }

  private untilLinkIs(status: 'up' | 'down'): Promise<void> {
    return waitUntil(async () => (await this.client.info('replication')).includes(`master_link_status:${status}`), {
      what: `the link of the replica to be ${status}`,
      timeoutMs: 15_000,
    });
  }
}
