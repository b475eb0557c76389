import { spawnSync } from 'node:child_process';
import { testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect, it } from 'vitest';

const NOWHERE = '127.0.0.1:1';
/** Settings for servers that answer, though late on a busy machine: a refusal ends the start at once. */
const PATIENT = { START_DEADLINE_MS: '15000' };
const audit = 'dist/apps/load-balancer/src/audit.cli.js';
const worker = 'dist/apps/worker/src/main.js';
const simulator = 'dist/lab/engine-simulator/src/main.js';
const balancer = 'dist/apps/load-balancer/src/main.js';

/** Output after a mistyped command: the error and its remedy, and never a stack. */
it.each<[string, string[], number, RegExp, Record<string, string>?]>([
  [
    'audit of a Redis that is away',
    [audit, '--pool', 'p'],
    2,
    /check that Redis runs at/,
    { REDIS_URL: `redis://:secret@${NOWHERE}` },
  ],
  [
    'audit of a pool that is not there',
    [audit, '--pool', `${testPool().pool}-typo`],
    2,
    /no pool .*-typo/,
    { REDIS_URL: testRedisUrl() },
  ],
  ['a service with an argument', [worker, '--concurrency', '3'], 2, /unknown argument '--concurrency'.*environment/],
  ['a service without NATS', [worker], 1, /check that NATS runs at the address of NATS_URL/],
  [
    'a service whose NATS has no TLS',
    [worker],
    1,
    /does not support TLS/,
    { NATS_URL: testNatsUrl().replace('nats://', 'tls://'), ...PATIENT },
  ],
  [
    'a service with a wrong password for Redis',
    [balancer],
    1,
    /user and password of REDIS_URL/,
    { NATS_URL: testNatsUrl(), REDIS_URL: testRedisUrl().replace('redis://', 'redis://me:secret@'), ...PATIENT },
  ],
  ['services with an argument', ['dist/libs/testing/src/services.cli.js', '--port', '1'], 1, /unknown option '--port'/],
  [
    'a recording of an engine with a wrong name',
    [simulator, 'record', `http://${NOWHERE}`, '--name', 'A b', '--behaviour', 'sends', '--release', 'r'],
    1,
    /--name has lower-case words/,
    { ENGINE_API_KEY: 'secret' },
  ],
  [
    'a recording of an engine that is away',
    [simulator, 'record', `http://${NOWHERE}`, '--name', 'a-b', '--behaviour', 'sends', '--release', 'r'],
    1,
    /does not answer/,
  ],
  [
    'a test of engines with an argument',
    ['scripts/test-engines.mjs', '--port', '1'],
    2,
    /Unknown option '--port'[^]*--engine URL/,
  ],
])('refuses %s with the error and its remedy, without a stack', (_, command, status, says, given = {}) => {
  const environment = { ...process.env, NATS_URL: `nats://${NOWHERE}`, START_DEADLINE_MS: '100', ...given };
  const run = spawnSync(process.execPath, command, { encoding: 'utf8', env: environment, timeout: 60_000 });
  expect(run.stderr).toMatch(says);
  expect(run.stderr).not.toMatch(/^\s+at |secret/m);
  expect(run.status).toBe(status);
});
