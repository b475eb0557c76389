import { BroomwagonError, parseRedisAddress } from '@broomwagon/contracts';
import { ConnectionsConfig, loadConfig } from '@broomwagon/platform';
import { connectRedis } from '@broomwagon/state';
import { SERVER_KINDS, type ServerKind } from '../provision/server-kind';
import { waitUntil } from '../wait-until';
import type { ServerHandle } from './server-handle';
import { natsAnswers } from './nats-answers';
import { redisAnswers } from './redis-answers';

const ANSWER_TIMEOUT_MS = 3_000;

/**
 * A server that runs already, named by a variable. We use it and never end it.
 *
 * @throws BroomwagonError VALIDATION_FAILED for an address of the wrong form, UNAVAILABLE when it does not answer.
 */
export async function givenServer(kind: ServerKind, url: string, variable: string): Promise<ServerHandle> {
  const details = SERVER_KINDS[kind];
  const address = kind === 'nats' ? parseNatsAddress(url) : parseRedisAddress(url)?.hosts[0];
  if (address === undefined) {
    const example = `${kind}://127.0.0.1:${details.containerPort}`;
    throw new BroomwagonError('VALIDATION_FAILED', `${variable} is not an address such as ${example}`, {
      field: variable,
    });
  }
  const { host, port } = address;
  const place = `${host}:${port}`;
  const answers = () => (kind === 'nats' ? natsAnswers(host, port).then(Boolean) : givenRedisAnswers(url));
  try {
    await waitUntil(answers, {
      what: `${details.label} at ${place}`,
      timeoutMs: ANSWER_TIMEOUT_MS,
      intervalMs: 200,
    });
  } catch (error) {
    const reason = (error as Error).message;
    throw new BroomwagonError('UNAVAILABLE', `${variable} names ${place}, which does not answer: ${reason}`, {
      cause: error,
    });
  }
  const refuse = () =>
    Promise.reject(
      new BroomwagonError(
        'INTERNAL',
        `${details.label} at ${place} was not started here and cannot be killed, stopped or paused`,
      ),
    );
  return {
    kind,
    url,
    port,
    pid: undefined,
    answers,
    getSettings: () => ({ [details.urlVariable]: url }),
    source: 'environment',
    description: `${details.label} at ${place}, named by ${variable}`,
    stop: () => Promise.resolve(),
    kill: refuse,
    restart: refuse,
    pause: refuse,
    resume: refuse,
  };
}

/** Reaches it as the services that are given this address will. */
async function givenRedisAnswers(url: string): Promise<boolean> {
  const { REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY, REDIS_TLS_SERVER_NAME, ...rest } = process.env;
  const { REDIS_SENTINEL_USER, REDIS_SENTINEL_PASSWORD, REDIS_NAT_MAP } = rest;
  const env = { REDIS_URL: url, REDIS_SENTINEL_USER, REDIS_SENTINEL_PASSWORD, REDIS_NAT_MAP };
  const tls = { REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY, REDIS_TLS_SERVER_NAME };
  const usesTls = url.startsWith('rediss');
  const connection = loadConfig(ConnectionsConfig, { env: usesTls ? { ...env, ...tls } : env }).redisConfig();
  if (parseRedisAddress(url)?.kind === 'server') {
    return redisAnswers(url, usesTls ? { tls: connection.tls } : {});
  }
  const redis = connectRedis(connection);
  try {
    await redis.ping();
    return true;
  } finally {
    redis.disconnect();
  }
}

/** The client interprets several addresses, or one without its scheme; this check uses the first. */
function parseNatsAddress(url: string): { host: string; port: number } | undefined {
  const first = (url.split(',')[0] ?? '').trim();
  const withScheme = first.includes('://') ? first : `nats://${first}`;
  if (!URL.canParse(withScheme)) return undefined;
  const { protocol, hostname, port } = new URL(withScheme);
  if (protocol !== 'nats:' && protocol !== 'tls:') return undefined;
  return { host: hostname, port: Number(port) || SERVER_KINDS.nats.containerPort };
}
