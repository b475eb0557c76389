import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '../free-port';
import { findServers } from '../provision/find-servers';
import { waitUntil } from '../wait-until';
import { startServer } from './private-server';
import { redisRecipe } from './redis-server';
import type { ServerHandle } from './server-handle';

const SLOTS = 16_384;
/** Silence after which a primary has failed, if a replica can replace it. A busy machine stands still for less. */
const NODE_TIMEOUT_MS = 2_000;
/** Without replicas nothing is gained by calling a primary failed, and its pools would be unavailable. */
const NODE_TIMEOUT_WITHOUT_REPLICAS_MS = 60_000;
const READY_TIMEOUT_MS = 60_000;

interface Node {
  readonly server: ServerHandle;
  readonly client: Redis;
  readonly id: string;
}

export interface ClusterSize {
  primaries: number;
  /** Replicas of each primary. */
  replicas: number;
}

/** A Redis Cluster of our own, on free ports of 127.0.0.1. */
export class RedisCluster {
  private constructor(private readonly nodes: Node[]) {}

  /**
   * @throws BroomwagonError UNAVAILABLE when there is no Redis to start here, TIMEOUT when they do not come together
   */
  static async start({ primaries, replicas }: ClusterSize): Promise<RedisCluster> {
    const nodes: Node[] = [];
    const cluster = new RedisCluster(nodes);
    try {
      const timeoutMs = replicas > 0 ? NODE_TIMEOUT_MS : NODE_TIMEOUT_WITHOUT_REPLICAS_MS;
      for (let index = 0; index < primaries * (1 + replicas); index += 1) {
        nodes.push(await startNode(index + 1, timeoutMs));
      }
      await cluster.form(primaries);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Addresses of all nodes, in the form of REDIS_URL. */
  get url(): string {
    return `redis+cluster://${this.nodes.map(({ server }) => `127.0.0.1:${server.port}`).join(',')}`;
  }

  get servers(): readonly ServerHandle[] {
    return this.nodes.map(({ server }) => server);
  }

  /** The server that holds this key now. */
  async findPrimary(key: string): Promise<ServerHandle> {
    return (await this.findOwner(key)).server;
  }

  /** A primary that does not hold this key. */
  async anotherThan(key: string): Promise<ServerHandle> {
    const owner = await this.findOwner(key);
    return (await this.primaries()).find((one) => one !== owner)!.server;
  }

  /** Kills a primary, and returns when a replica has taken its place and the killed one is a replica. */
  failOver(primary: ServerHandle): Promise<void> {
    return this.replace(
      primary,
      () => primary.kill(),
      () => primary.restart(),
    );
  }

  /** Pauses a primary, which stays connected and silent; returns when a replica has taken its place. */
  failOverHung(primary: ServerHandle): Promise<void> {
    return this.replace(
      primary,
      () => primary.pause(),
      () => primary.resume(),
    );
  }

  /** Kills a primary whose replica lacks the writes of the last `lostMs`. Returns the number of bytes that are lost. */
  async failOverBehind(primary: ServerHandle, lostMs: number): Promise<number> {
    const links = await Promise.all(this.nodes.map(({ client }) => client.info('replication')));
    const replica = this.nodes.find((_, index) => links[index]!.includes(`master_port:${primary.port}\r`))!;
    // A password that the primary does not have keeps the replica from connecting again.
    await replica.client.config('SET', 'masterauth', 'none');
    await replica.client.call('CLIENT', 'KILL', 'TYPE', 'MASTER');
    await delay(lostMs);
    const from = this.nodes.find(({ server }) => server === primary)!;
    const [written, copied] = [await readOffset(from), await readOffset(replica)];
    await this.failOver(primary);
    await replica.client.config('SET', 'masterauth', '');
    return written - copied;
  }

  private async replace(primary: ServerHandle, fail: () => Promise<void>, recover: () => Promise<void>): Promise<void> {
    const failed = this.nodes.find(({ server }) => server === primary)!;
    const witness = this.nodes.find((node) => node !== failed)!;
    await fail();
    await this.until('a replica to take over', async () => {
      const owners = (await witness.client.cluster('SLOTS')).map((range) => range[2]![2]);
      return !owners.includes(failed.id);
    });
    await recover();
    await this.untilWhole();
  }

  /** Adds a primary, which has no slots and no functions. */
  async addPrimary(): Promise<ServerHandle> {
    const [first] = this.nodes as [Node];
    const node = await startNode(this.nodes.length + 1, NODE_TIMEOUT_MS);
    this.nodes.push(node);
    await node.client.call('CLUSTER', 'MEET', '127.0.0.1', String(first.server.port), await readBusPort(first));
    await this.untilAllKnown();
    return node.server;
  }

  /**
   * Begins to move the slot of a key to another primary, as a resharding does: its keys stay where they are.
   * @returns function that moves all its keys and ends the move
   */
  async beginMove(key: string, target?: ServerHandle): Promise<() => Promise<void>> {
    const from = await this.findOwner(key);
    const to = (await this.primaries()).find((one) => (target ? one.server === target : one !== from))!;
    const slot = await from.client.cluster('KEYSLOT', key);
    await to.client.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', from.id);
    await from.client.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', to.id);
    return async () => {
      for (;;) {
        const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[];
        if (keys.length === 0) break;
        await from.client.call('MIGRATE', '127.0.0.1', String(to.server.port), '', '0', '5000', 'KEYS', ...keys);
      }
      for (const one of [to, from]) await one.client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', to.id);
      await this.until('all to know the new owner', async () => {
        const owners = await Promise.all(this.nodes.map((node) => ownerIdIn(node, slot)));
        return owners.every((id) => id === to.id);
      });
    };
  }

  async stop(): Promise<void> {
    for (const { client } of this.nodes) client.disconnect();
    await Promise.all(this.nodes.map(({ server }) => server.stop()));
  }

  private async form(primaries: number): Promise<void> {
    const [first, ...others] = this.nodes as [Node, ...Node[]];
    for (const [index, { client }] of this.nodes.slice(0, primaries).entries()) {
      const from = Math.floor((index * SLOTS) / primaries);
      const to = Math.floor(((index + 1) * SLOTS) / primaries) - 1;
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    }
    const busPort = await readBusPort(first);
    for (const { client } of others) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', String(first.server.port), busPort);
    }
    await this.untilAllKnown();
    for (const [index, { client }] of this.nodes.slice(primaries).entries()) {
      await client.call('CLUSTER', 'REPLICATE', this.nodes[index % primaries]!.id);
    }
    await this.untilWhole();
  }

  private untilAllKnown(): Promise<void> {
    return this.until('all nodes to know each other', async () =>
      (await this.infos()).every((info) => info.includes(`cluster_known_nodes:${this.nodes.length}\r`)),
    );
  }

  /** Every slot has its primary and replicas, as far as all of them know. */
  private async untilWhole(): Promise<void> {
    await this.until('the Cluster to be whole', async () => {
      const infos = await this.infos();
      const links = await Promise.all(this.nodes.map(({ client }) => client.info('replication')));
      const slots = await Promise.all(this.nodes.map(({ client }) => client.cluster('SLOTS') as Promise<unknown[][]>));
      return (
        infos.every((info) => info.includes('cluster_state:ok')) &&
        links.every((link) => link.includes('role:master') || link.includes('master_link_status:up')) &&
        slots.every(
          (ranges) => new Set(ranges.flatMap((range) => range.slice(2)).map(String)).size === this.nodes.length,
        )
      );
    });
  }

  private infos(): Promise<string[]> {
    return Promise.all(this.nodes.map(({ client }) => client.cluster('INFO') as Promise<string>));
  }

  private async primaries(): Promise<Node[]> {
    const roles = await Promise.all(this.nodes.map(({ client }) => client.info('replication')));
    return this.nodes.filter((_, index) => roles[index]!.includes('role:master'));
  }

  private async findOwner(key: string): Promise<Node> {
    const [asked] = this.nodes as [Node];
    const id = await ownerIdIn(asked, await asked.client.cluster('KEYSLOT', key));
    return this.nodes.find((node) => node.id === id)!;
  }

  private until(what: string, look: () => Promise<boolean>): Promise<void> {
    return waitUntil(() => look().catch(() => false), { what, timeoutMs: READY_TIMEOUT_MS });
  }
}

async function startNode(configEpoch: number, timeoutMs: number): Promise<Node> {
  const found = await findServers(['redis'], {});
  const configuration = [
    'cluster-enabled yes',
    `cluster-port ${await freePort()}`,
    `cluster-node-timeout ${timeoutMs}`,
    // A pool whose slot is covered stays available while another slot has no primary.
    'cluster-require-full-coverage no',
    'cluster-allow-replica-migration no',
    'repl-diskless-sync-delay 0',
  ].join('\n');
  const server = await startServer(redisRecipe, found.get('redis')!, { configuration });
  const client = new Redis(server.url);
  client.on('error', () => undefined);
  await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(configEpoch));
  return { server, client, id: (await client.cluster('MYID')) as string };
}

async function readBusPort({ client }: Node): Promise<string> {
  const [, port] = (await client.config('GET', 'cluster-port')) as [string, string];
  return port;
}

async function ownerIdIn({ client }: Node, slot: number): Promise<string | undefined> {
  const ranges = await client.cluster('SLOTS');
  return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]?.[2];
}

/** How many bytes of writes a node has made or copied. */
async function readOffset({ client }: Node): Promise<number> {
  const info = await client.info('replication');
  return Number(/^(?:slave|master)_repl_offset:(\d+)/m.exec(info)![1]);
}
