import { BroomwagonError, type TlsSettings } from '@broomwagon/contracts';
import { ConnectionsConfig, loadConfig } from '@broomwagon/platform';
import { SERVER_KINDS, type ServerKind } from '../provision/server-kind';
import { waitUntil } from '../wait-until';
import type { ServerHandle } from './server-handle';
import { natsAnswers } from './nats-answers';
import { redisAnswers } from './redis-answers';

const ANSWER_TIMEOUT_MS = 3_000;
const SCHEMES: Record<ServerKind, readonly string[]> = {
  nats: ['nats:', 'tls:'],
  redis: ['redis:', 'rediss:'],
};

/**
 * A server that runs already, named by a variable. We use it and never end it.
 *
 * @throws BroomwagonError VALIDATION_FAILED for an address of the wrong form, UNAVAILABLE when it does not answer.
 */
export async function givenServer(kind: ServerKind, url: string, variable: string): Promise<ServerHandle> {
  const facts = SERVER_KINDS[kind];
  // Several addresses, or a NATS one without its scheme, are for the client to understand; we look at the first.
  const first = (url.split(',')[0] ?? '').trim();
  const address = parse(first.includes('://') ? first : `${kind}://${first}`);
  if (address === undefined || !SCHEMES[kind].includes(address.protocol)) {
    const example = `${kind}://127.0.0.1:${facts.containerPort}`;
    throw new BroomwagonError('VALIDATION_FAILED', `${variable} is not an address such as ${example}`, {
      field: variable,
    });
  }
  const port = Number(address.port) || facts.containerPort;
  const place = `${address.hostname}:${port}`;
  const answers = () =>
    kind === 'nats' ? natsAnswers(address.hostname, port).then(Boolean) : redisAnswers(first, { tls: tlsFor(first) });
  try {
    await waitUntil(answers, {
      what: `${facts.label} at ${place}`,
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
    Promise.reject(new BroomwagonError('INTERNAL', `${facts.label} at ${place} is not ours to kill, stop or pause`));
  return {
    kind,
    url,
    port,
    pid: undefined,
    answers,
    source: 'environment',
    description: `${facts.label} at ${place}, named by ${variable}`,
    stop: () => Promise.resolve(),
    kill: refuse,
    restart: refuse,
    pause: refuse,
    resume: refuse,
  };
}

/** As the services that are given this address will speak it. */
function tlsFor(redisUrl: string): TlsSettings | undefined {
  if (!redisUrl.startsWith('rediss://')) return undefined;
  const { REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY, REDIS_TLS_SERVER_NAME } = process.env;
  const env = { REDIS_URL: redisUrl, REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY, REDIS_TLS_SERVER_NAME };
  return loadConfig(ConnectionsConfig, { env }).redisConfig().tls;
}

function parse(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}
