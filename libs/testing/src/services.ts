import type { Credentials } from './provision/credentials';
import { findServers, type FindOptions } from './provision/find-servers';
import { SERVER_KINDS, type ServerKind } from './provision/server-kind';
import { givenServer } from './servers/given-server';
import { natsRecipe } from './servers/nats-server';
import { startServer } from './servers/private-server';
import { redisRecipe } from './servers/redis-server';
import type { ServerHandle } from './servers/server-handle';

/** The NATS and Redis that a system stands on. */
export interface Services {
  readonly nats: ServerHandle;
  readonly redis: ServerHandle;
  /** Settings with which a program connects to both: as this user, where a server has the users of `deploy`. */
  getSettings(user: string): Record<string, string>;
  /** Ends the servers that were started here; given servers are left alone. */
  stop(): Promise<void>;
}

export interface ServicesOptions extends FindOptions {
  /** Where NATS_URL and REDIS_URL are looked up. Default: the environment of this process. */
  environment?: NodeJS.ProcessEnv;
  /** TEST_NATS_URL and TEST_REDIS_URL have precedence over NATS_URL and REDIS_URL. */
  forTests?: boolean;
  /** Servers of our own have these users. Default: no users. */
  credentials?: Credentials;
}

/**
 * Gives NATS and Redis on any machine: the servers that NATS_URL and REDIS_URL name, else servers of our own by
 * executables on PATH, private copies or Docker. Which it was stands in `source` and `description` of each.
 *
 * @throws BroomwagonError VALIDATION_FAILED or UNAVAILABLE; nothing is left running then.
 */
export async function provideServices(options: ServicesOptions = {}): Promise<Services> {
  const environment = options.environment ?? process.env;
  const findUrlVariable = (kind: ServerKind): string | undefined => {
    const { testUrlVariable, urlVariable } = SERVER_KINDS[kind];
    return [...(options.forTests ? [testUrlVariable] : []), urlVariable].find((name) => environment[name]);
  };
  const missing = (['nats', 'redis'] as const).filter((kind) => findUrlVariable(kind) === undefined);
  const found = missing.length > 0 ? await findServers(missing, options) : new Map<never, never>();

  const provide = (kind: ServerKind): Promise<ServerHandle> => {
    const variable = findUrlVariable(kind);
    if (variable !== undefined) return givenServer(kind, environment[variable]!, variable);
    return startServer(kind === 'nats' ? natsRecipe : redisRecipe, found.get(kind)!, {
      credentials: options.credentials,
    });
  };
  const [nats, redis] = await Promise.allSettled([provide('nats'), provide('redis')]);
  if (nats.status === 'fulfilled' && redis.status === 'fulfilled') {
    const stop = async () => void (await Promise.all([nats.value.stop(), redis.value.stop()]));
    const getSettings = (user: string) => ({ ...nats.value.getSettings(user), ...redis.value.getSettings(user) });
    return { nats: nats.value, redis: redis.value, getSettings, stop };
  }
  for (const one of [nats, redis]) if (one.status === 'fulfilled') await one.value.stop();
  throw nats.status === 'rejected' ? nats.reason : (redis as PromiseRejectedResult).reason;
}
