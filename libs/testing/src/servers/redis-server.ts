import { join } from 'node:path';
import { findServers, type FindOptions } from '../provision/find-servers';
import { startServer, type ServerRecipe } from './private-server';
import { redisAnswers } from './redis-answers';
import type { ServerHandle, ServerOptions } from './server-handle';

const USERS_FILE = 'users.acl';

export interface RedisOptions extends ServerOptions, FindOptions {}

/** How Redis is run: append-only file synced every second, no snapshots, nothing ever evicted, loopback only. */
export function redisRecipe(options: ServerOptions): ServerRecipe {
  const { credentials } = options;
  const { user, password } = credentials?.getAdmin('redis') ?? options;
  const url = (port: number) => `redis://${login(user, password)}127.0.0.1:${port}`;
  return {
    kind: 'redis',
    configuration: ({ folder, port }) =>
      [
        'bind 127.0.0.1',
        `port ${port}`,
        'daemonize no',
        `dir ${quote(folder)}`,
        'save ""',
        'appendonly yes',
        'appendfsync everysec',
        'maxmemory-policy noeviction',
        ...(credentials ? [`aclfile ${quote(join(folder, USERS_FILE))}`] : accessLines(user, password)),
      ].join('\n'),
    files: credentials && { [USERS_FILE]: credentials.redisUsers },
    commandArguments: (file) => [file],
    url,
    answers: (port, expected) => redisAnswers(url(port), { processId: expected?.pid }),
  };
}

/**
 * Starts a Redis (or Valkey) server of our own on a free port of 127.0.0.1. With `password` alone the default user
 * needs it; with `user` too, that user has all rights and the default one is off.
 *
 * @throws BroomwagonError UNAVAILABLE when there is no way to start one here, with the command that helps.
 */
export async function startRedis(options: RedisOptions = {}): Promise<ServerHandle> {
  const found = await findServers(['redis'], options);
  return startServer(redisRecipe, found.get('redis')!, options);
}

const quote = (text: string) => JSON.stringify(text);

function accessLines(user: string | undefined, password: string | undefined): string[] {
  if (password === undefined) return [];
  if (user === undefined) return [`requirepass ${quote(password)}`];
  return [`user ${user} on ~* &* +@all ${quote(`>${password}`)}`, 'user default off ~* &* +@all'];
}

function login(user: string | undefined, password: string | undefined): string {
  if (password === undefined) return '';
  return `${user === undefined ? '' : encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
}
