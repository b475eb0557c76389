import type { Socket } from 'node:net';
import { BroomwagonError, NO_TLS_ADVICE, tlsAdvice } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';
import { FunctionRunner, loadLibrary, transition } from './library/function-runner';

const TLS_TRIES = 6;
/** Reads a pool, here one that is not there. */
const LOOK = transition<object, object>('pools/read-settings');
const WHAT_TO_SET: readonly [error: RegExp, advice: string][] = [
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

/**
 * Looks once whether Redis lets us in and run functions on our keys. A Redis that is unavailable passes: the connection
 * tries again for ever, and readiness reports it. One that refuses us, or has no TLS where `rediss://` asks for it, would
 * refuse us for ever.
 * @param keyPrefix first part of our keys
 * @throws BroomwagonError UNAVAILABLE saying what to set
 */
export async function checkRedisAccess(redis: Redis, keyPrefix: string): Promise<void> {
  let advice: string | undefined;
  const look = (error: unknown) => (advice ??= adviceFor(error));
  redis.on('error', look);
  // With TLS 1.3 a client certificate is refused after the handshake, and a reset may overtake the reason.
  const tries = redis.options.tls === undefined ? 1 : TLS_TRIES;
  try {
    for (let number = 1; number <= tries; number++) {
      try {
        // Something short first: a peer that resets the connection while much is written is not heard.
        await redis.ping();
        await loadLibrary(redis);
        await new FunctionRunner(redis, keyPrefix).run(LOOK, '', {});
        return;
      } catch (error) {
        look(error);
        if (handshakeHangs(redis)) advice ??= NO_TLS_ADVICE;
        if (advice === undefined) continue;
        const { host, port } = redis.options;
        throw new BroomwagonError('UNAVAILABLE', `Redis at ${host}:${port}: ${advice}`, { cause: error });
      }
    }
  } finally {
    redis.off('error', look);
  }
}

/** Somebody has taken the connection, and nothing came of TLS on it: a Redis without TLS waits for a whole line. */
function handshakeHangs({ options, status, stream }: Redis): boolean {
  return options.tls !== undefined && status === 'connecting' && !(stream as Socket | undefined)?.connecting;
}

function adviceFor(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return WHAT_TO_SET.find(([pattern]) => pattern.test(error.message))?.[1] ?? tlsAdvice(error, 'REDIS_TLS');
}
