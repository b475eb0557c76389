import { BroomwagonError, tlsAdvice } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';
import { BoundedRedis } from './bounded-redis';
import { FunctionRunner } from './library/function-runner';
import { PoolStore } from './pools';
import { BoundedCluster, type RedisClient } from './redis-cluster';
import { tlsRefusal } from './tls-probe';

type Advice = readonly [error: RegExp, advice: string][];
const FOR_REDIS: Advice = [
  [/NOAUTH/, 'it requires a password; set REDIS_URL to redis://:password@host:port or redis://user:password@host:port'],
  [/WRONGPASS|invalid password/i, 'it refuses the user and password of REDIS_URL'],
  [
    /NOPERM.*function\|load/,
    'its user may not load functions, and no service has loaded those of this version: start a load-balancer or ' +
      'trainer-coordinator of this version first',
  ],
  [
    /NOPERM|ACL failure|The user executing the script can't/,
    'the user of REDIS_URL may not run functions on the keys of this service; grant it FUNCTION, FCALL and the ' +
      'keys of REDIS_KEY_PREFIX (docs/operations.md)',
  ],
  [
    /unknown command.*(FUNCTION|FCALL)/i,
    'it has no Redis Functions; Redis 7.0 or later, or Valkey, is required: update it, or change REDIS_URL',
  ],
];
const FOR_SENTINELS: Advice = [
  [
    /NOAUTH|WRONGPASS/,
    'they require a password; set REDIS_SENTINEL_PASSWORD, and REDIS_SENTINEL_USER if there is a user',
  ],
  [/No such master/, 'they monitor no primary of this name; end REDIS_URL with the name given to `sentinel monitor`'],
  [/unknown command.*sentinel/i, 'these are not Sentinels; use their addresses, or redis:// in REDIS_URL'],
];
/** Advice when the address is of another kind than the server, by `redis_mode` of INFO. */
const FOR_SERVER_MODE: Record<string, string> = {
  cluster: 'it is a node of a Cluster; set REDIS_URL to redis+cluster://host:port',
  sentinel: 'it is a Sentinel; set REDIS_URL to redis+sentinel://host:port/name-of-the-primary',
};
const FOR_NODE_MODE: Record<string, string> = {
  standalone: 'it is not a node of a Cluster; set REDIS_URL to redis://host:port',
  sentinel: FOR_SERVER_MODE['sentinel']!,
};

/**
 * Checks once that Redis accepts this client and lets it run functions on its keys, and that the server is of the kind
 * that the address names. An unavailable Redis passes, because the connection tries again for ever, and readiness
 * reports it. A Redis that refuses the client, or has no TLS for a `rediss` address, would fail for ever.
 * @param keyPrefix first part of the keys
 * @throws BroomwagonError UNAVAILABLE that names the setting to change
 */
export async function checkRedisAccess(redis: RedisClient, keyPrefix: string): Promise<void> {
  const runLibrary = async () => {
    // A Cluster answers PING once ioredis knows the primaries.
    await redis.ping();
    // Reads the settings of a pool that does not exist; this call loads a missing library.
    await new PoolStore(new FunctionRunner(redis, keyPrefix)).settings('');
  };
  if (!(redis instanceof BoundedCluster)) {
    await tryOn(redis, async () => {
      await checkMode(redis, FOR_SERVER_MODE);
      await runLibrary();
    });
    return;
  }
  for (const host of redis.hosts) {
    // A connection to one node is needed, because the connection of the Cluster does not emit errors of its nodes.
    const node = new BoundedRedis(redis.timeoutMs, { ...redis.options.redisOptions, ...host });
    node.on('error', () => undefined);
    try {
      const checkNode = async () => {
        await checkMode(node, FOR_NODE_MODE);
        await node.cluster('SLOTS');
      };
      if (!(await tryOn(node, checkNode))) continue;
      await tryOn(node, runLibrary);
      return;
    } finally {
      node.disconnect();
    }
  }
}

/**
 * Runs a check on a connection.
 * @returns false if the check failed for a reason that may pass
 * @throws BroomwagonError UNAVAILABLE that names the setting to change
 */
async function tryOn(redis: Redis, look: () => Promise<unknown>): Promise<boolean> {
  let advice: string | undefined;
  const note = (error: unknown) => (advice ??= adviceFor(error, FOR_REDIS));
  const noteOfSentinel = (error: unknown) => (advice ??= adviceFor(error, FOR_SENTINELS));
  redis.on('error', note).on('sentinelError', noteOfSentinel);
  const { host = '', port = 0, tls, sentinels } = redis.options;
  let cause: unknown;
  try {
    if (tls && !sentinels) note((cause = await tlsRefusal(host, port, tls)));
    // The check runs after a TLS refusal too: closing the connection during its handshake raises an unhandled error.
    await look();
    if (advice === undefined) return true;
  } catch (error) {
    cause = error;
    if (error instanceof WrongMode) advice ??= error.message;
    note(error);
  } finally {
    redis.off('error', note).off('sentinelError', noteOfSentinel);
  }
  if (advice === undefined) return false;
  throw new BroomwagonError('UNAVAILABLE', `${formatRedisName(redis)}: ${advice}`, { cause });
}

class WrongMode extends Error {}

async function checkMode(redis: Redis, advice: Record<string, string>): Promise<void> {
  // Valkey names the field server_mode.
  const [, mode = ''] = /^(?:redis|server)_mode:(\w+)/m.exec(await redis.info('server').catch(() => '')) ?? [];
  if (advice[mode] !== undefined) throw new WrongMode(advice[mode]);
}

function formatRedisName({ options }: Redis): string {
  const { host, port, sentinels, name } = options;
  if (!sentinels) return `Redis at ${host}:${port}`;
  return `Redis ${name} of the Sentinels at ${sentinels.map((one) => `${one.host}:${one.port}`).join(', ')}`;
}

/** Advice on the setting to change when Redis refuses this client; undefined for an error that may pass. */
export function redisAdvice(error: unknown): string | undefined {
  return adviceFor(error, FOR_REDIS);
}

function adviceFor(error: unknown, known: Advice): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return known.find(([pattern]) => pattern.test(error.message))?.[1] ?? tlsAdvice(error, 'REDIS_TLS');
}
