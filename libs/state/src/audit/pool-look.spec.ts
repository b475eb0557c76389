import { afterEach, beforeEach, expect, it } from 'vitest';
import type { FunctionRunner } from '../library/function-runner';
import { openTestStore } from '../routing/routing-store.fixture';
import { PoolLook } from './pool-look';
import { checkCounters } from './sum-checks';

let test: ReturnType<typeof openTestStore>;
let name: string;
let worker: Awaited<ReturnType<(typeof test)['worker']>>;
beforeEach(async () => {
  test = openTestStore();
  name = `a:${(await test.server('a')).epoch}`;
  worker = await test.worker('w');
  await test.acquire(worker, { contextTokens: 1_000 });
  await test.redis.hincrby(`${test.root}:servers:tokens`, name, 7);
});
afterEach(() => test.close());

/** Checks and mends the counts of a server, and calls `act` before each of the first `times` mends. */
async function lookWhile(act: () => Promise<unknown>, times: number) {
  let mends = 0;
  const meddled = Object.create(test.runner) as FunctionRunner;
  meddled.run = async (...args) => {
    if (args[0].name === 'audit/mend' && ++mends <= times) await act();
    return test.runner.run(...args);
  };
  const look = new PoolLook(test.redis, meddled, test.pool, true);
  await checkCounters(look, [], new Map());
  return { mends, findings: look.findings.map(({ check, repaired }) => [check, repaired]) };
}
const tokens = () => test.redis.hget(`${test.root}:servers:tokens`, name);

it('does not mend a count that has changed since it was read, and checks it again', async () => {
  const acquire = () => test.acquire(worker, { contextTokens: 500 });
  expect(await lookWhile(acquire, 1)).toEqual({ mends: 2, findings: [['server-tokens', true]] });
  expect(await tokens()).toBe(String(1_000 - 256 + 500 - 256));
});

it('reports a wrong count that changes all the time, and does not mend it', async () => {
  const acquire = () => test.acquire(worker, { contextTokens: 500 });
  expect(await lookWhile(acquire, 9)).toEqual({ mends: 4, findings: [['server-tokens', false]] });
  expect(await tokens()).toBe(String(1_000 - 256 + 4 * (500 - 256) + 7));
});

it('does not mend a count that another process has mended', async () => {
  const mend = () => test.redis.hset(`${test.root}:servers:tokens`, name, 1_000 - 256);
  expect(await lookWhile(mend, 1)).toEqual({ mends: 1, findings: [] });
});
