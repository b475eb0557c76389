import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { BroomwagonError } from '@broomwagon/contracts';
import { findComposeFile } from './find-compose-file';
import type { ServerKind } from './server-kind';

const run = promisify(execFile);
/** The user with all permissions. */
const ADMIN = 'admin';

interface DeployFiles {
  natsConfiguration: string;
  natsPermissions: string;
  /** Access control list of Redis, with the passwords. */
  redisUsers: string;
}

/** The users of deploy/nats and deploy/redis, with passwords as scripts/credentials.mjs makes them. */
export class Credentials {
  private constructor(
    private readonly files: ReadonlyMap<string, string>,
    private readonly deploy: DeployFiles,
  ) {}

  /** Makes new passwords. @throws BroomwagonError UNAVAILABLE outside of a checkout of the repository */
  static async make(): Promise<Credentials> {
    const composeFile = await findComposeFile(__dirname);
    if (composeFile === undefined) throw new BroomwagonError('UNAVAILABLE', `No docker-compose.yml above ${__dirname}`);
    const toPath = (file: string) => join(dirname(composeFile), file);
    const folder = await mkdtemp(join(tmpdir(), 'broomwagon-credentials-'));
    try {
      await run(process.execPath, [toPath('scripts/credentials.mjs'), folder]);
      const names = await readdir(folder);
      const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
      const files = new Map(names.map((name, index) => [name, texts[index]!]));
      const env = { ...process.env, ...parseVariables(files.get('passwords.env')) };
      const [natsConfiguration, natsPermissions, users] = await Promise.all([
        readFile(toPath('deploy/nats/nats.conf'), 'utf8'),
        readFile(toPath('deploy/nats/permissions.conf'), 'utf8'),
        run('awk', ['-f', toPath('deploy/redis/users.awk'), toPath('deploy/redis/users.acl')], { env }),
      ]);
      return new Credentials(files, { natsConfiguration, natsPermissions, redisUsers: users.stdout });
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  /** All passwords, which NATS finds in its environment. */
  get passwords(): Record<string, string> {
    return parseVariables(this.files.get('passwords.env'));
  }

  /** The text of an ACL file of Redis. */
  get redisUsers(): string {
    return this.deploy.redisUsers;
  }

  /** The configuration of NATS without the port for monitoring, with its data in this folder. */
  natsConfiguration(dataFolder: string): string {
    return this.deploy.natsConfiguration
      .replace(/^http_port.*$/m, '')
      .replace('/data', () => JSON.stringify(dataFolder))
      .replace('include permissions.conf', () => this.deploy.natsPermissions);
  }

  /** The settings with which a program connects to this server as this user; none if the server has no such user. */
  getSettings(user: string, kind: ServerKind, host: string): Record<string, string> {
    const { REDIS_URL, ...ofNats } = parseVariables(this.files.get(`${user}.env`));
    if (kind === 'nats') return ofNats['NATS_USER'] ? { NATS_URL: `nats://${host}`, ...ofNats } : {};
    return REDIS_URL ? { REDIS_URL: REDIS_URL.replace(/\$\{.*?\}/, 'redis').replace(/\$\{.*?\}/, host) } : {};
  }

  /** The user with all permissions. */
  getAdmin(kind: ServerKind): { user: string; password: string } {
    return { user: ADMIN, password: this.passwords[`${kind.toUpperCase()}_ADMIN_PASSWORD`]! };
  }

  /** Writes the files that docker-compose.yml names. */
  async writeTo(folder: string): Promise<void> {
    for (const [name, text] of this.files) await writeFile(join(folder, name), text, { mode: 0o600 });
  }
}

function parseVariables(text = ''): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]));
}
