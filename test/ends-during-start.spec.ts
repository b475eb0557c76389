import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { join, resolve } from 'node:path';
import { freePort, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { describe, expect, inject, it } from 'vitest';

const APPS = ['admin-api', 'gateway', 'load-balancer', 'trainer-coordinator', 'worker'] as const;
/** Moments of a start at which SIGTERM is sent, milliseconds: every 100 ms in `npm run test:faults`. */
const STEP_MS = inject('runsFactor') > 1 ? 100 : 600;
const MOMENTS_MS = Array.from({ length: 1_800 / STEP_MS }, (_, index) => index * STEP_MS);

/** Runs a program as process 1 of a namespace of its own, as a container does. */
const AS_PROCESS_1 = ['unshare', '--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'];

/** Writes a file when a service handles SIGTERM. Node itself catches the signal earlier, and then has no handler. */
const MARKER = resolve('test/system/mark-sigterm.cjs');

/** Why this machine cannot run a program as process 1; undefined if it can. */
function whyNotProcess1(): string | undefined {
  const { status, error, stderr } = spawnSync(AS_PROCESS_1[0]!, [...AS_PROCESS_1.slice(1), 'true']);
  return status === 0 ? undefined : (error?.message ?? String(stderr).trim());
}

/** The only child of `unshare`, as the system sees it: process 1 of the namespace. */
function findProcess1(unsharePid: number): number | undefined {
  const children = readFileSync(`/proc/${unsharePid}/task/${unsharePid}/children`, 'utf8').trim();
  return children === '' ? undefined : Number(children);
}

/**
 * Starts a service, and resolves with its end after one SIGTERM.
 * @param before command line that runs the service, if it is not run directly
 */
async function endAfter(app: string, sendAfterMs: number, natsUrl: string, before: readonly string[] = []) {
  const [program, ...programArguments] = [...before, process.execPath, join('dist', 'apps', app, 'src', 'main.js')];
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-signals-'));
  const mark = join(folder, 'handles-sigterm');
  const service = spawn(program!, programArguments, {
    env: {
      ...(before.length > 0 && { NODE_OPTIONS: `--require=${MARKER}`, SIGTERM_MARK: mark }),
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
  if (before.length > 0) await expect.poll(() => existsSync(mark), { interval: 1 }).toBe(true);
  await delay(sendAfterMs);
  if (before.length === 0) service.kill('SIGTERM');
  else process.kill(findProcess1(service.pid!)!, 'SIGTERM');
  const ended = { app, end: await end, errors };
  rmSync(folder, { recursive: true });
  return ended;
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

describe('as process 1 of a pid namespace', () => {
  const whyNot = whyNotProcess1();
  // Process 1 loses a signal that comes before its handler: chart and compose file put another process there.
  it.for(MOMENTS_MS)('each service ends at SIGTERM %i ms after it handles SIGTERM', async (sendAfterMs, { skip }) => {
    skip(whyNot !== undefined, whyNot);
    const ends = await Promise.all(APPS.map((app) => endAfter(app, sendAfterMs, testNatsUrl(), AS_PROCESS_1)));
    for (const { app, end, errors } of ends) expect([app, end, errors]).toEqual([app, 0, '']);
  });
});
