import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { freePort } from '../free-port';
import { ManagedProcess } from '../processes/managed-process';
import { guardWithCommand } from '../processes/watchdog';
import { Credentials } from '../provision/credentials';
import { ComposeService } from '../provision/docker-compose';
import type { FoundServer } from '../provision/find-servers';
import { SERVER_KINDS, type ServerKind } from '../provision/server-kind';
import { waitUntil } from '../wait-until';
import type { ServerHandle, ServerOptions } from './server-handle';

const DEFAULT_READY_TIMEOUT_MS = 15_000;
/** Tries of a port: another process may take a free port before the server binds it. */
const PORT_TRIES = 4;

/** Differences between NATS and Redis. */
export interface ServerRecipe {
  readonly kind: ServerKind;
  /** The text of the configuration file. */
  configuration(place: { folder: string; port: number; name: string }): string;
  /** Further files of its folder. */
  files?: Record<string, string>;
  /** Further variables for the environment of the server. */
  environment?: Record<string, string>;
  /** The arguments that make the server read that file. */
  commandArguments(configurationFile: string): string[];
  url(port: number): string;
  /** True when the server at that port answers and is the one we started (as far as `name` and `pid` are known). */
  answers(port: number, expected?: { name: string; pid: number | undefined }): Promise<boolean>;
}

/**
 * Starts a server in the way that was found, and waits until it answers.
 *
 * @throws BroomwagonError UNAVAILABLE or TIMEOUT with the end of its log; UNAVAILABLE for options that a container
 * cannot take.
 */
export async function startServer(
  recipeFor: (options: ServerOptions) => ServerRecipe,
  found: FoundServer,
  options: ServerOptions,
): Promise<ServerHandle> {
  if (found.source === 'docker') return startInContainer(recipeFor, found, options);
  const recipe = recipeFor(options);
  for (let tries = 1; ; tries += 1) {
    try {
      return await startHere(recipe, found, options, options.port ?? (await freePort()));
    } catch (error) {
      const portTaken = isBroomwagonError(error) && /address already in use/i.test(error.message);
      if (!portTaken || options.port !== undefined || tries === PORT_TRIES) throw error;
    }
  }
}

async function startHere(
  recipe: ServerRecipe,
  found: Exclude<FoundServer, { source: 'docker' }>,
  options: ServerOptions,
  port: number,
): Promise<ServerHandle> {
  const { kind } = recipe;
  const name = `broomwagon-${kind}-${randomBytes(4).toString('hex')}`;
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), `broomwagon-${kind}-`)));
  await mkdir(folder, { recursive: true });
  const removeFolder = () => (options.keepFolder ? undefined : rm(folder, { recursive: true, force: true }));
  const configurationFile = join(folder, `${kind}.conf`);
  const lines = [recipe.configuration({ folder, port, name }), options.configuration ?? '', ''];
  const files = { ...recipe.files, [`${kind}.conf`]: lines.join('\n') };
  // Files may hold passwords.
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text, { mode: 0o600 });

  const answers = (process: ManagedProcess) => recipe.answers(port, { name, pid: process.pid });
  const server = new ManagedProcess({
    name: SERVER_KINDS[kind].label,
    command: [found.binary.path, ...recipe.commandArguments(configurationFile)],
    environment: { ...found.binary.environment, ...recipe.environment },
    workingFolder: folder,
    logFile: join(folder, `${kind}.log`),
    ready: answers,
    readyTimeoutMs: options.readyTimeoutMs ?? DEFAULT_READY_TIMEOUT_MS,
    folderToRemove: options.keepFolder ? undefined : folder,
  });
  try {
    await server.start();
  } catch (error) {
    await removeFolder();
    throw error;
  }
  return {
    kind,
    url: recipe.url(port),
    port,
    get pid() {
      return server.pid;
    },
    process: server,
    answers: () => answers(server),
    getSettings: settings(recipe, options.credentials, port),
    source: found.source,
    description: `${SERVER_KINDS[kind].label} on 127.0.0.1:${port}, ${found.description}`,
    async stop() {
      await server.stop();
      await removeFolder();
    },
    async kill() {
      server.kill('SIGKILL');
      await server.exited;
    },
    restart: () => server.restart(),
    async pause() {
      server.pause();
    },
    async resume() {
      server.resume();
    },
  };
}

async function startInContainer(
  recipeFor: (options: ServerOptions) => ServerRecipe,
  found: Extract<FoundServer, { source: 'docker' }>,
  options: ServerOptions,
): Promise<ServerHandle> {
  const { kind } = recipeFor(options);
  const { label } = SERVER_KINDS[kind];
  if (options.user !== undefined || options.password !== undefined || options.configuration !== undefined) {
    throw new BroomwagonError('UNAVAILABLE', `${label} with users or a configuration of its own needs its executable`);
  }
  const project = `broomwagon-${kind}-${randomBytes(4).toString('hex')}`;
  // The compose file has no server without users.
  const credentials = options.credentials ?? (await Credentials.make());
  const recipe = recipeFor({ ...options, credentials });
  const hostPort = options.port ?? (await freePort());
  const service = new ComposeService(kind, found.composeFile, project, hostPort, credentials);
  const watchdog = guardWithCommand(service.downCommand);
  const stop = async () => {
    await service.down();
    watchdog.release();
  };
  let port: number;
  const whenReady = () =>
    waitUntil(() => recipe.answers(port), {
      what: `${label} in its container`,
      timeoutMs: options.readyTimeoutMs ?? DEFAULT_READY_TIMEOUT_MS,
    });
  try {
    port = await service.up();
    await whenReady();
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
  return {
    kind,
    url: recipe.url(port),
    port,
    pid: undefined,
    answers: () => recipe.answers(port),
    getSettings: settings(recipe, credentials, port),
    source: 'docker',
    description: `${label} on 127.0.0.1:${port}, ${found.description}`,
    stop,
    kill: () => service.signal('SIGKILL'),
    async restart() {
      await service.restart();
      await whenReady();
    },
    pause: () => service.signal('SIGSTOP'),
    resume: () => service.signal('SIGCONT'),
  };
}

function settings({ kind, url }: ServerRecipe, credentials: Credentials | undefined, port: number) {
  return (user: string): Record<string, string> =>
    credentials?.getSettings(user, kind, `127.0.0.1:${port}`) ?? { [SERVER_KINDS[kind].urlVariable]: url(port) };
}
