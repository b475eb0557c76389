import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, type ServerHandle, startNats, startRedis, TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import type { NatsConfig } from '../../libs/messaging/src/connection';

const passwordOf = (user: string) => `of-${user}`;
const read = (file: string) => readFileSync(`deploy/${file}`, 'utf8');

/** NATS and Redis with the users of deploy/nats and deploy/redis, passwords, and TLS. */
export class RestrictedServers {
  private constructor(
    readonly nats: ServerHandle,
    readonly redis: ServerHandle,
    private readonly redisTlsPort: number,
    private readonly folder: string,
  ) {}

  static async start(): Promise<RestrictedServers> {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-restricted-'));
    const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
    writeFileSync(certificate, TEST_CERTIFICATE);
    writeFileSync(key, TEST_KEY);
    const redisTlsPort = await freePort();
    const [nats, redis] = await Promise.all([
      startNats({ folder: join(folder, 'nats'), configuration: natsConfiguration(folder, { certificate, key }) }),
      startRedis({
        user: 'admin',
        password: passwordOf('admin'),
        configuration: [
          `aclfile ${redisUsers(folder)}`,
          `tls-port ${redisTlsPort}`,
          `tls-cert-file ${certificate}`,
          `tls-key-file ${key}`,
          `tls-ca-cert-file ${certificate}`,
          'tls-auth-clients no',
        ].join('\n'),
      }),
    ]);
    return new RestrictedServers(nats, redis, redisTlsPort, folder);
  }

  /** How a program connects as this user. */
  natsConfig(user: string): NatsConfig {
    return {
      url: `tls://localhost:${this.nats.port}`,
      user,
      password: passwordOf(user),
      tls: { ca: TEST_CERTIFICATE },
      inboxPrefix: `_INBOX.${user}`,
    };
  }

  /** The same as settings of a service or a command line, with the user of Redis of that name. */
  environmentOf(user: string): Record<string, string> {
    const ca = join(this.folder, 'server.crt');
    return {
      NATS_URL: `tls://localhost:${this.nats.port}`,
      NATS_USER: user,
      NATS_PASSWORD: passwordOf(user),
      NATS_INBOX_PREFIX: `_INBOX.${user}`,
      NATS_TLS_CA: ca,
      REDIS_URL: `rediss://${user}:${passwordOf(user)}@localhost:${this.redisTlsPort}`,
      REDIS_TLS_CA: ca,
    };
  }

  /** The address of Redis without TLS for a user. */
  redisUrl(user: string): string {
    return `redis://${user}:${passwordOf(user)}@127.0.0.1:${this.redis.port}`;
  }

  /** Changes the configuration of NATS, which takes it over while it runs. */
  async changeNats(change: (configuration: string) => string): Promise<void> {
    const file = join(this.folder, 'nats', 'nats.conf');
    const before = readFileSync(file, 'utf8');
    const after = change(before);
    if (after === before) throw new Error('the configuration of NATS is the same');
    writeFileSync(file, after);
    process.kill(this.nats.pid!, 'SIGHUP');
  }

  /** All that NATS has logged. */
  natsLog(): string {
    return readFileSync(join(this.folder, 'nats', 'nats.log'), 'utf8');
  }

  async stop(): Promise<void> {
    await Promise.all([this.nats.stop(), this.redis.stop()]);
    rmSync(this.folder, { recursive: true });
  }
}

/** deploy/nats/nats.conf with the files of a test. */
function natsConfiguration(folder: string, { certificate, key }: { certificate: string; key: string }): string {
  const configuration = read('nats/nats.conf')
    .replace(/^http_port.*$/m, `tls { cert_file: "${certificate}", key_file: "${key}" }`)
    .replace('/data', join(folder, 'jetstream'))
    .replace('include permissions.conf', () => read('nats/permissions.conf'));
  const passwords = [...configuration.matchAll(/user: ([\w-]+), password: \$(\w+)/g)];
  return [...passwords.map(([, user, variable]) => `${variable}: "${passwordOf(user!)}"`), configuration].join('\n');
}

/** The path of deploy/redis/users.acl with passwords. */
function redisUsers(folder: string): string {
  const users = [...read('redis/users.acl').matchAll(/^user ([\w-]+) on >\$(\w+)/gm)];
  const passwords = Object.fromEntries(users.map(([, user, variable]) => [variable!, passwordOf(user!)]));
  const made = execFileSync('awk', ['-f', 'deploy/redis/users.awk', 'deploy/redis/users.acl'], {
    env: { ...process.env, ...passwords },
  });
  const file = join(folder, 'users.acl');
  writeFileSync(file, made);
  return file;
}
