import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startNats, startRedis, TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { afterAll, expect, inject, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-start-tls-'));
const certificate = join(folder, 'server.crt');
const key = join(folder, 'server.key');
writeFileSync(certificate, TEST_CERTIFICATE);
writeFileSync(key, TEST_KEY);
afterAll(() => rmSync(folder, { recursive: true }));

it.skipIf(!inject('redisHasTls'))('npm start trains on a NATS and a Redis that only speak TLS', async () => {
  const tlsPort = await freePort();
  const redisLines = [`tls-port ${tlsPort}`, `tls-cert-file "${certificate}"`, `tls-key-file "${key}"`];
  const [nats, redis] = await Promise.all([
    startNats({ configuration: `tls { cert_file: "${certificate}", key_file: "${key}" }` }),
    startRedis({
      configuration: [...redisLines, `tls-ca-cert-file "${certificate}"`, 'tls-auth-clients no'].join('\n'),
    }),
  ]);
  try {
    const options = '--steps 1 --groups 2 --samples 2 --engines 1 --max-tokens 64 --once --no-baseline'.split(' ');
    const start = spawn(process.execPath, ['dist/lab/demo/src/main.js', ...options], {
      env: {
        ...process.env,
        NATS_URL: `tls://localhost:${nats.port}`,
        NATS_TLS_CA: certificate,
        REDIS_URL: `rediss://localhost:${tlsPort}`,
        REDIS_TLS_CA: certificate,
      },
    });
    let said = '';
    for (const stream of [start.stdout, start.stderr]) stream.on('data', (text) => (said += String(text)));
    const [code] = (await once(start, 'close')) as [number];
    expect(said).toContain('4 submitted, 4 trained');
    expect(code).toBe(0);
  } finally {
    await Promise.all([nats.stop(), redis.stop()]);
  }
});
