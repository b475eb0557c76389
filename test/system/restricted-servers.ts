import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Credentials,
  freePort,
  redisHasTls,
  type ServerHandle,
  startNats,
  startRedis,
  TEST_CERTIFICATE,
  TEST_KEY,
} from '@broomwagon/testing';
import type { NatsConfig } from '../../libs/messaging/src/connection';

/** NATS and Redis with the users of deploy/nats and deploy/redis, and TLS; a Redis that was built without it has none. */
export class RestrictedServers {
  private constructor(
    readonly nats: ServerHandle,
    readonly redis: ServerHandle,
    private readonly redisTlsPort: number | undefined,
    private readonly folder: string,
  ) {}

  static async start(): Promise<RestrictedServers> {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-restricted-'));
    const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
    writeFileSync(certificate, TEST_CERTIFICATE);
    writeFileSync(key, TEST_KEY);
    const [hasTls, port, credentials] = await Promise.all([redisHasTls(), freePort(), Credentials.make()]);
    const redisTlsPort = hasTls ? port : undefined;
    const tlsLines = [
      `tls-port ${port}`,
      `tls-cert-file ${certificate}`,
      `tls-key-file ${key}`,
      `tls-ca-cert-file ${certificate}`,
      'tls-auth-clients no',
    ];
    const [nats, redis] = await Promise.all([
      startNats({
        credentials,
        folder: join(folder, 'nats'),
        configuration: `tls { cert_file: "${certificate}", key_file: "${key}" }`,
      }),
      startRedis({
        credentials,
        configuration: hasTls ? tlsLines.join('\n') : undefined,
      }),
    ]);
    return new RestrictedServers(nats, redis, redisTlsPort, folder);
  }

  /** How a program connects as this user. */
  natsConfig(user: string): NatsConfig {
    const { NATS_PASSWORD: password, NATS_INBOX_PREFIX: inboxPrefix } = this.nats.getSettings(user);
    return { url: `tls://localhost:${this.nats.port}`, user, password, tls: { ca: TEST_CERTIFICATE }, inboxPrefix };
  }

  /** Settings of a service or a command line, with the users of NATS and Redis of that name. */
  getEnvironment(user: string): Record<string, string> {
    const ca = join(this.folder, 'server.crt');
    const plainUrl = this.redis.getSettings(user)['REDIS_URL'] ?? '';
    const nats = { ...this.nats.getSettings(user), NATS_URL: `tls://localhost:${this.nats.port}`, NATS_TLS_CA: ca };
    if (this.redisTlsPort === undefined) return { ...nats, REDIS_URL: plainUrl };
    const url = plainUrl.replace(/^redis:(.*@).*/, `rediss:$1localhost:${this.redisTlsPort}`);
    return { ...nats, REDIS_URL: url, REDIS_TLS_CA: ca };
  }

  /** The address of Redis without TLS for a user. */
  redisUrl(user: string): string {
    return this.redis.getSettings(user)['REDIS_URL']!;
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
