import { BroomwagonError, tlsAdvice } from '@broomwagon/contracts';
import { Redis } from 'ioredis';
import { FunctionRunner, loadLibrary, transition } from './library/function-runner';
import { BoundedCluster, type RedisClient } from './redis-cluster';
import { tlsRefusal } from './tls-probe';

/** Reads a pool, here one that is not there. */
const LOOK = transition<object, object>('pools/read-settings');

type Advice = readonly [error: RegExp, advice: string][];
const FOR_REDIS: Advice = [
  [/NOAUTH/, 'it wants a password; write redis://:password@host:port, or user:password@, into REDIS_URL'],
  [/WRONGPASS|invalid password/i, 'it does not know the user and password of REDIS_URL'],
  [
    /NOPERM|ACL failure/,
    'the user of REDIS_URL may not run functions on our keys; grant it FUNCTION, FCALL and the keys of REDIS_KEY_PREFIX ' +
      '(docs/operations.md)',
  ],
  [
    /unknown command.*FUNCTION/i,
    'it has no Redis Functions; Redis 7.0 or later, or Valkey, is needed: install a newer one, or name another in REDIS_URL',
  ],
];
const FOR_SENTINELS: Advice = [
  [
    /NOAUTH|WRONGPASS/,
    'they want a user or password; set REDIS_SENTINEL_PASSWORD, and REDIS_SENTINEL_USER where there is one',
  ],
  [
    /No such master/,
    'they watch no primary of this name; write the name of `sentinel monitor` at the end of REDIS_URL',
  ],
  [/unknown command.*sentinel/i, 'these are no Sentinels; name their addresses, or write redis:// instead'],
];
/** `redis_mode` of INFO -> what to write when the address is of another kind. */
const FOR_SERVER_MODE: Record<string, string> = {
  cluster: 'it is a node of a Cluster; write redis+cluster://host:port into REDIS_URL',
  sentinel: 'it is a Sentinel; write redis+sentinel://host:port/name-of-the-primary into REDIS_URL',
};
const FOR_NODE_MODE: Record<string, string> = {
  standalone: 'it is no node of a Cluster; write redis://host:port into REDIS_URL',
  sentinel: FOR_SERVER_MODE['sentinel']!,
};

/**
 * Looks once whether Redis lets us in and run functions on our keys, and whether it is of the kind that its address says. A
 * Redis that is unavailable passes: the connection tries again for ever, and readiness reports it. One that refuses us, or
 * has no TLS where `rediss` asks for it, would refuse us for ever.
 * @param keyPrefix first part of our keys
 * @throws BroomwagonError UNAVAILABLE saying what to set
 */
export async function checkRedisAccess(redis: RedisClient, keyPrefix: string): Promise<void> {
  const runLibrary = async () => {
    await loadLibrary(redis);
    await new FunctionRunner(redis, keyPrefix).run(LOOK, '', {});
  };
  if (!(redis instanceof BoundedCluster)) {
    await tryOn(redis, async () => {
      await checkMode(redis, FOR_SERVER_MODE);
      await runLibrary();
    });
    return;
  }
  for (const host of redis.hosts) {
    // Errors of a node's connection are not heard through that of the Cluster.
    const node = new Redis({ ...redis.options.redisOptions, ...host });
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

/** @returns whether it succeeded; it may later where it did not @throws BroomwagonError UNAVAILABLE saying what to set */
async function tryOn(redis: Redis, look: () => Promise<unknown>): Promise<boolean> {
  let advice: string | undefined;
  const note = (error: unknown) => (advice ??= adviceFor(error, FOR_REDIS));
  const noteOfSentinel = (error: unknown) => (advice ??= adviceFor(error, FOR_SENTINELS));
  redis.on('error', note).on('sentinelError', noteOfSentinel);
  const { host = '', port = 0, tls, sentinels } = redis.options;
  let cause: unknown;
  try {
    if (tls && !sentinels) note((cause = await tlsRefusal(host, port, tls)));
    if (advice === undefined) {
      await look();
      return true;
    }
  } catch (error) {
    cause = error;
    if (error instanceof WrongMode) advice ??= error.message;
    note(error);
  } finally {
    redis.off('error', note).off('sentinelError', noteOfSentinel);
  }
  if (advice === undefined) return false;
  throw new BroomwagonError('UNAVAILABLE', `${nameOf(redis)}: ${advice}`, { cause });
}

class WrongMode extends Error {}

async function checkMode(redis: Redis, advice: Record<string, string>): Promise<void> {
  const [, mode = ''] = /^redis_mode:(\w+)/m.exec(await redis.info('server').catch(() => '')) ?? [];
  if (advice[mode] !== undefined) throw new WrongMode(advice[mode]);
}

function nameOf({ options }: Redis): string {
  const { host, port, sentinels, name } = options;
  if (!sentinels) return `Redis at ${host}:${port}`;
  return `Redis ${name} of the Sentinels at ${sentinels.map((one) => `${one.host}:${one.port}`).join(', ')}`;
}

function adviceFor(error: unknown, known: Advice): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return known.find(([pattern]) => pattern.test(error.message))?.[1] ?? tlsAdvice(error, 'REDIS_TLS');
}
