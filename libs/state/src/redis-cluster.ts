import type { HostAndPort } from '@broomwagon/contracts';
import { Cluster, type Redis } from 'ioredis';
import { limitTime } from './bounded-redis';
import { gatherWrites } from './gather-writes';

/** A connection to one server (by its address or by Sentinels), or to all nodes of a Cluster. */
export type RedisClient = Redis | BoundedCluster;

/**
 * A Cluster in which no command waits for ever. ioredis itself keeps the commands to an unavailable Cluster and runs
 * them when it is available again.
 */
export class BoundedCluster extends Cluster {
  /**
   * @param hosts some nodes of the Cluster, from which ioredis learns the others
   * @param timeoutMs a command without an answer for this long fails, milliseconds
   */
  constructor(
    readonly hosts: readonly HostAndPort[],
    readonly timeoutMs: number,
    options: ConstructorParameters<typeof Cluster<'legacy'>>[1],
  ) {
    super([...hosts], options);
    // ioredis ignores the answer to ASKING, so a connection that closes before this answer would raise an unhandled
    // rejection and end the process. The command after ASKING gets the same error.
    this.on('+node', (node: Redis) => {
      const asking = node.asking.bind(node);
      node.asking = () => asking().catch(() => 'OK' as const);
      const send = node.sendCommand.bind(node);
      node.sendCommand = (...command) => {
        gatherWrites(node);
        return send(...command);
      };
    });
  }

  override sendCommand(...[command, ...rest]: Parameters<Cluster['sendCommand']>): unknown {
    // The command has timed out while it waited, so its caller has an error already.
    if (command.isSettled) return command.promise;
    limitTime(command, this.timeoutMs, (...event) => this.emit(...event));
    return super.sendCommand(command, ...rest);
  }
}

/**
 * The servers that hold keys: all known primaries of a Cluster, or the single server.
 * @throws Error when no node of the Cluster can be reached
 */
export function listPrimaries(redis: RedisClient): Redis[] {
  if (!(redis instanceof Cluster)) return [redis];
  const primaries = redis.nodes('master');
  if (primaries.length === 0) throw new Error('No node of the Redis Cluster can be reached');
  return primaries;
}

/**
 * The primaries that may hold keys in the slot of this key, the owner of the slot first. While a slot moves, its keys
 * go from the owner to another node, so a scan in this order misses none.
 */
export async function* primariesWith(redis: RedisClient, key: string): AsyncGenerator<Redis> {
  if (!(redis instanceof Cluster)) return yield redis;
  const [owner] = redis.slots[await redis.cluster('KEYSLOT', key)] ?? [];
  const isOwner = ({ options }: Redis) => `${options.host}:${options.port}` === owner;
  const first = listPrimaries(redis).find(isOwner);
  if (first) yield first;
  for (const other of listPrimaries(redis)) if (other !== first) yield other;
}
