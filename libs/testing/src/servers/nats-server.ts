import { join } from 'node:path';
import { findServers, type FindOptions } from '../provision/find-servers';
import { natsAnswers } from './nats-answers';
import { startServer, type ServerRecipe } from './private-server';
import type { ServerHandle, ServerOptions } from './server-handle';

export interface NatsOptions extends ServerOptions, FindOptions {}

/** How NATS is run: JetStream in the private folder, loopback only. */
export function natsRecipe(options: ServerOptions): ServerRecipe {
  const { credentials } = options;
  const { user, password } = credentials?.getAdmin('nats') ?? options;
  const authorization =
    password === undefined || credentials
      ? []
      : [`authorization { ${user === undefined ? 'token' : `user: ${quote(user)}, password`}: ${quote(password)} }`];
  return {
    kind: 'nats',
    configuration: ({ folder, port, name }) =>
      [
        `server_name: ${quote(name)}`,
        `listen: "127.0.0.1:${port}"`,
        credentials?.natsConfiguration(join(folder, 'jetstream')) ??
          `jetstream { store_dir: ${quote(join(folder, 'jetstream'))} }`,
        ...authorization,
      ].join('\n'),
    environment: credentials?.passwords,
    commandArguments: (file) => ['-c', file],
    url: (port) => `nats://${login(user, password)}127.0.0.1:${port}`,
    async answers(port, expected) {
      const greeting = await natsAnswers('127.0.0.1', port);
      return greeting.jetstream === true && (expected === undefined || greeting.server_name === expected.name);
    },
  };
}

/**
 * Starts a NATS server of our own on a free port of 127.0.0.1, with JetStream. With `password` alone it asks for a
 * token, with `user` too for both.
 *
 * @throws BroomwagonError UNAVAILABLE when there is no way to start one here, with the command that helps.
 */
export async function startNats(options: NatsOptions = {}): Promise<ServerHandle> {
  const found = await findServers(['nats'], options);
  return startServer(natsRecipe, found.get('nats')!, options);
}

const quote = (text: string) => JSON.stringify(text);

function login(user: string | undefined, password: string | undefined): string {
  if (password === undefined) return '';
  const secret = encodeURIComponent(password);
  return user === undefined ? `${secret}@` : `${encodeURIComponent(user)}:${secret}@`;
}
