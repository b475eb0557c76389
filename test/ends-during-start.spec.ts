import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { freePort, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect, inject, it } from 'vitest';

const APPS = ['admin-api', 'gateway', 'load-balancer', 'trainer-coordinator', 'worker'] as const;
/** Moments of a start at which SIGTERM is sent, milliseconds; `npm run test:faults` takes four times as many. */
const MOMENTS_MS = Array.from({ length: 3 * inject('runsFactor') }, (_, index) => (index * 600) / inject('runsFactor'));

/** Starts a service, and resolves with its end after one SIGTERM. */
async function endAfter(app: string, sendAfterMs: number, natsUrl: string) {
  const service = spawn(process.execPath, [join('dist', 'apps', app, 'src', 'main.js')], {
    env: {
      PATH: process.env['PATH'],
      NATS_URL: natsUrl,
      REDIS_URL: testRedisUrl(),
      REDIS_KEY_PREFIX: testPool().pool,
      POOL: testPool().pool,
      API_KEYS: 'off',
      START_DEADLINE_MS: '600000',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  service.stderr.on('data', (bytes) => (errors += String(bytes)));
  const end = new Promise<number | string | null>((resolve) =>
    service.on('exit', (code, signal) => resolve(code ?? signal)),
  );
  await delay(sendAfterMs);
  service.kill('SIGTERM');
  return { app, end: await end, errors };
}

// Process 1 of a container ignores a signal that it does not handle; any other process ends by the signal.
it.each(APPS)('%s handles SIGTERM before it loads anything else', (app) => {
  const [first] = readFileSync(join('apps', app, 'src', 'main.ts'), 'utf8').match(/^import .*$/m)!;
  expect(first).toContain('libs/platform/src/service/signals-first');
});

it('ends every service at SIGTERM while it waits for NATS', async () => {
  const noNats = `nats://127.0.0.1:${await freePort()}`;
  const ends = await Promise.all(APPS.map((app) => endAfter(app, 3_000, noNats)));
  for (const { app, end, errors } of ends)
    expect([app, end, errors]).toEqual([app, expect.toBeOneOf([0, 'SIGTERM']), '']);
});

it.each(MOMENTS_MS)('ends every service at SIGTERM %i ms after its start', async (sendAfterMs) => {
  const ends = await Promise.all(APPS.map((app) => endAfter(app, sendAfterMs, testNatsUrl())));
  for (const { app, end, errors } of ends)
    expect([app, end, errors]).toEqual([app, expect.toBeOneOf([0, 'SIGTERM']), '']);
});
