import { connectRedis } from '@broomwagon/state';
import { flushPrefix, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { theLibrary } from '../../../../libs/state/src/library/function-runner';
import { KEY_PREFIX, PoolState } from '../stage';
import { timeAllScripts } from './all-cases';
import { SMALL_SCRIPTS } from './small-scripts';

const url = testRedisUrl();
const redis = connectRedis({ url, commandTimeoutMs: 60_000 });
const state = new PoolState({ url } as ConstructorParameters<typeof PoolState>[0]);
afterAll(async () => {
  await redis.quit();
  await state.close();
  await flushPrefix(url, `${KEY_PREFIX}:`);
});

it('every script has a row in the benchmark of scripts, or is listed as a script of constant size', async () => {
  const scripts = [...theLibrary().functions.keys()];
  // These are the cases of the benchmark, with small inputs.
  const sizes = { servers: 450, leases: 256, shapes: [[4, 2]] as const, jobs: 8, running: 8, repeats: 1 };
  const rows = new Set((await timeAllScripts(state, redis, sizes)).map(({ script }) => script));
  const small = Object.keys(SMALL_SCRIPTS);
  const unmeasured = scripts.filter((name) => !rows.has(name) && !small.includes(name)).toSorted();
  expect(unmeasured, 'add a case beside this file, or an entry in small-scripts.ts').toEqual([]);
  const superfluous = small.filter((name) => rows.has(name) || !scripts.includes(name));
  expect(superfluous, 'remove these entries of small-scripts.ts').toEqual([]);
});
