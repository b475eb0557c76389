import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TEST_CERTIFICATE, TEST_KEY } from '../certificates';
import { freePort } from '../free-port';
import { startRedis } from './redis-server';

/** Lines of the log of a Redis or a Valkey that was built without TLS, as the wheels of Valkey are. */
const WITHOUT_TLS = /Failed finding TLS support|built without TLS|Bad directive.*tls/is;

/** Whether the Redis of this machine speaks TLS. Tests of TLS are skipped without it. */
export async function redisHasTls(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-redis-has-tls-'));
  const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
  writeFileSync(certificate, TEST_CERTIFICATE);
  writeFileSync(key, TEST_KEY);
  try {
    const lines = [`tls-port ${await freePort()}`, `tls-cert-file "${certificate}"`, `tls-key-file "${key}"`];
    const server = await startRedis({
      configuration: [...lines, `tls-ca-cert-file "${certificate}"`, 'tls-auth-clients no'].join('\n'),
    });
    await server.stop();
    return true;
  } catch (error) {
    if (WITHOUT_TLS.test((error as Error).message)) return false;
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
