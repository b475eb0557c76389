import { BroomwagonError } from '@broomwagon/contracts';
import { SERVER_KINDS, type ServerKind } from '../provision/server-kind';
import { waitUntil } from '../wait-until';
import type { ServerHandle } from './server-handle';
import { natsAnswers } from './nats-answers';
import { redisAnswers } from './redis-answers';

const ANSWER_TIMEOUT_MS = 3_000;
const SCHEMES: Record<ServerKind, readonly string[]> = {
  nats: ['nats:', 'tls:', 'ws:', 'wss:'],
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
  const answers = () => (kind === 'nats' ? natsAnswers(address.hostname, port).then(Boolean) : redisAnswers(first));
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

function parse(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}
