import { slowStartCapacity } from '@broomwagon/models';
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { openTestStore, type TestStore } from '../routing/routing-store.fixture';
import type { WaiterAnswers } from '../leases/grants';
import type { ServerStore } from '../servers/server.store';

let test: TestStore;
let servers: ServerStore;
beforeEach(() => {
  test = openTestStore();
  ({ servers } = test);
});
afterEach(() => test.close());

const waiting = (acquireId: string, more: object = {}) => ({
  acquireId,
  waitMs: 20_000,
  replyTo: `inbox.${acquireId}`,
  ...more,
});
const ids = ({ answers }: { answers: { acquireId: string }[] }) => answers.map(({ acquireId }) => acquireId);
/** Changes settings and rescores the servers, as `pool.configure` does. */
async function configure(settings: Record<string, number>) {
  await test.redis.hset(`${test.root}:settings`, settings);
  return servers.rescore(test.pool, {});
}
async function status(serverId: string) {
  const { servers: list } = await test.servers.list(test.pool);
  return list.find((server) => server.serverId === serverId)!;
}

it('never grants more leases than the pool may have, and grants a freed one to a waiter on any server', async () => {
  await test.server('a', 10);
  await test.server('b', 10);
  await configure({ poolMaxInflight: 3 });
  const worker = await test.worker('w');
  const held = [];
  for (let n = 0; n < 3; n++) held.push(await test.acquire(worker));
  expect(await test.acquire(worker)).toMatchObject({ error: 'SERVERS_FULL', reason: 'pool-full' });
  await test.acquire(worker, waiting('first'));
  await test.acquire(worker, waiting('second'));
  expect(ids(await test.release(held[0]!.acquireId))).toEqual(['first']);
  expect((await test.pools.status(test.pool)).leases).toBe(3);
  expect(ids(await configure({ poolMaxInflight: 4 }))).toEqual(['second']);
});

it('parks or refuses while the pool is paused, and grants in order when it is resumed', async () => {
  await test.server('a', 2);
  const worker = await test.worker('w');
  const before = await test.acquire(worker, { acquireId: 'before' });
  expect(await test.pools.pause(test.pool, { paused: true })).toMatchObject({ paused: true, changed: true });
  expect(await test.pools.pause(test.pool, { paused: true })).toMatchObject({ paused: true, changed: false });
  expect(await test.acquire(worker)).toMatchObject({ error: 'POOL_PAUSED' });
  expect(await test.acquire(worker, waiting('one'))).toMatchObject({ parked: true });
  expect(await test.acquire(worker, waiting('two'))).toMatchObject({ parked: true });
  // A granted lease stays, and a repeat of its acquire is answered.
  expect(await test.acquire(worker, { acquireId: 'before' })).toMatchObject({ seq: before.seq, branch: 'repeated' });
  expect((await test.release('before')).answers).toEqual([]);
  expect((await test.waiters.grant(test.pool)).answers).toEqual([]);
  expect(ids(await test.pools.pause(test.pool, { paused: false }))).toEqual(['one', 'two']);
  expect(await test.pools.pause(test.pool, { paused: false })).toMatchObject({ paused: false, changed: false });
});

it('answers parked acquires at their own deadline while the pool is paused, with the reason', async () => {
  const worker = await test.worker('w');
  await test.acquire(worker, waiting('before', { waitMs: 1 }));
  await test.pools.pause(test.pool, { paused: true });
  await test.acquire(worker, waiting('within', { waitMs: 1 }));
  await test.acquire(worker, waiting('later', { waitMs: 20_000 }));
  const ended: { acquireId: string }[] = [];
  const expire = async () => {
    ended.push(...(await test.waiters.expire(test.pool)).answers);
    return ended;
  };
  const paused = (acquireId: string) => expect.objectContaining({ acquireId, error: 'POOL_PAUSED' }) as unknown;
  await expect.poll(expire).toEqual([paused('before'), paused('within')]);
});

it('never lets a burst of one worker starve another: at most one turn of four leases goes first', async () => {
  await test.server('a', 1);
  const [greedy, modest] = [await test.worker('greedy'), await test.worker('modest')];
  let held = (await test.acquire(greedy)).acquireId;
  for (let n = 0; n < 60; n++) await test.acquire(greedy, waiting(`g${n}`));
  const order: string[] = [];
  const next = async () => {
    held = ids(await test.release(held))[0]!;
    order.push(held);
  };
  for (let n = 0; n < 10; n++) await next();
  for (let n = 0; n < 3; n++) await test.acquire(modest, waiting(`m${n}`));
  for (let n = 0; n < 50; n++) await next();
  expect(order.indexOf('m0')).toBeLessThanOrEqual(10 + 4);
  expect(order.indexOf('m2')).toBeLessThanOrEqual(10 + 8);
  // The acquires of each worker are granted in the order of arrival.
  expect(order.filter((id) => id.startsWith('g'))).toEqual(
    order.filter((id) => id.startsWith('g')).toSorted((one, other) => Number(one.slice(1)) - Number(other.slice(1))),
  );
});

it('is fair to all workers: after any number of grants no worker with a backlog is over two turns behind', async () => {
  const bursts = fc.array(fc.record({ worker: fc.nat(3), size: fc.integer({ min: 1, max: 12 }) }), {
    minLength: 2,
    maxLength: 6,
  });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(bursts, async (list) => {
      run++;
      const workers = [];
      for (let n = 0; n < 4; n++) workers.push(await test.worker(`${run}-w${n}`));
      const waits = new Map<string, number>();
      const items = list.flatMap(({ worker, size }, burst) =>
        Array.from({ length: size }, (_, n) => ({ worker, acquireId: `${run}-${burst}-${n}` })),
      );
      for (const { worker, acquireId } of items) {
        await test.acquire(workers[worker]!, waiting(acquireId));
        waits.set(acquireId, worker);
      }
      const left = [0, 1, 2, 3].map((worker) => items.filter((item) => item.worker === worker).length);
      const granted = [0, 0, 0, 0];
      let page: WaiterAnswers = await test.server(`${run}-s`, 1_000);
      const order = ids(page);
      while (page.more) {
        page = await test.waiters.grant(test.pool);
        order.push(...ids(page));
      }
      expect(new Set(order).size).toBe(items.length);
      for (const acquireId of order) {
        const worker = waits.get(acquireId)!;
        granted[worker]!++;
        left[worker]!--;
        for (let other = 0; other < 4; other++) {
          if (left[other]! > 0) expect(granted[worker]! - granted[other]!).toBeLessThanOrEqual(8);
        }
      }
      await test.servers.remove(test.pool, { serverId: `${run}-s` });
      await test.sweep();
    }),
    { numRuns: 15 * inject('runsFactor') },
  );
  // The turns are deleted with the last waiter.
  expect(await test.redis.keys(`${test.root}:waiters:*`)).toEqual([]);
});

it('ends the wait of a cancelled acquire with exactly one answer, and returns no granted lease', async () => {
  await test.server('a', 1);
  const [worker, other] = [await test.worker('w'), await test.worker('other')];
  const held = await test.acquire(worker, { acquireId: 'held' });
  await test.acquire(worker, waiting('parked'));
  expect(await test.leases.cancel(test.pool, { ...other, acquireId: 'parked' })).toMatchObject({
    cancelled: false,
    reason: 'fenced',
  });
  expect(await test.leases.cancel(test.pool, { ...worker, acquireId: 'parked' })).toMatchObject({
    cancelled: true,
    reason: 'cancelled',
    answers: [{ acquireId: 'parked', replyTo: 'inbox.parked', error: 'RELEASED' }],
  });
  expect(await test.leases.cancel(test.pool, { ...worker, acquireId: 'parked' })).toMatchObject({
    reason: 'tombstone',
    answers: [],
  });
  expect(await test.leases.cancel(test.pool, { ...worker, acquireId: 'held' })).toMatchObject({
    reason: 'granted',
    seq: held.seq,
  });
  expect((await test.release('held')).answers).toEqual([]);
  expect(await test.leases.cancel(test.pool, { ...worker, acquireId: 'held' })).toMatchObject({ reason: 'released' });
  expect(await test.leases.cancel(test.pool, { ...worker, acquireId: 'not yet' })).toMatchObject({
    reason: 'tombstone',
  });
  expect(await test.acquire(worker, waiting('not yet'))).toMatchObject({ error: 'RELEASED' });
});

it('lets a new start grow to its capacity by the pure function, and grants the growing room to waiters', async () => {
  await configure({ slowStartMs: 100_000, slowStartFraction: 0.2 });
  await test.server('a', 10);
  const worker = await test.worker('w');
  expect(await test.acquire(worker)).toMatchObject({ serverId: 'a' });
  expect(await test.acquire(worker)).toMatchObject({ serverId: 'a' });
  expect(await test.acquire(worker)).toMatchObject({ error: 'SERVERS_FULL' });
  await test.acquire(worker, { ...waiting('later'), waitMs: 200_000 });
  expect(await servers.warm(test.pool)).toMatchObject({ warming: 1, answers: [] });
  const startedAtMs = Date.now();
  const age = async (ageMs: number) =>
    test.redis.hset(`${test.root}:meta`, 'clockMs', startedAtMs + ageMs).then(() => status('a'));
  for (const ageMs of [12_000, 50_500, 88_000]) {
    const expected = slowStartCapacity({ maxInflight: 10, ageMs, slowStartMs: 100_000, fraction: 0.2 });
    expect((await age(ageMs)).capacity).toBe(expected);
  }
  expect(ids(await servers.warm(test.pool))).toEqual(['later']);
  await test.redis.zadd(`${test.root}:servers:warming`, 1, 'a');
  await age(100_000);
  expect(await servers.warm(test.pool)).toMatchObject({ warming: 0 });
  expect((await status('a')).capacity).toBe(10);
});

it('gives a load report to one caller for a decision, and ignores a decision that arrives too late', async () => {
  await configure({ adaptiveConcurrency: 1, adaptIntervalMs: 2_000 });
  const { epoch } = await test.server('a', 100);
  const worker = await test.worker('w');
  for (let n = 0; n < 4; n++) await test.acquire(worker);
  const report = (preemptions: number) =>
    servers.reportLoads(test.pool, {
      reports: [{ serverId: 'a', epoch, running: 3, waiting: 3, kvUse: 0.5, preemptions }],
    });
  expect(await report(7)).toEqual({ drifts: [{ serverId: 'a', drift: -2 }], due: [] });
  expect((await status('a')).load).toMatchObject({ running: 3, waiting: 3, kvUse: 0.5, preemptions: 7 });
  expect((await report(9)).due).toEqual([]);
  await expect
    .poll(async () => (await report(9)).due)
    .toMatchObject([{ serverId: 'a', limit: 100, maxInflight: 100, inflight: 4, newPreemptions: 2 }]);
  expect((await report(9)).due).toEqual([]);
  const change = { serverId: 'a', epoch, from: 100, to: 3 };
  expect((await servers.limit(test.pool, { limits: [change] })).limited).toEqual(['a']);
  expect((await servers.limit(test.pool, { limits: [{ ...change, to: 50 }] })).limited).toEqual([]);
  expect((await status('a')).capacity).toBe(3);
  expect(await test.acquire(worker)).toMatchObject({ error: 'SERVERS_FULL' });
  await test.acquire(worker, waiting('waits'));
  expect(ids(await servers.limit(test.pool, { limits: [{ ...change, from: 3, to: 100 }] }))).toEqual(['waits']);
  expect(
    await servers.reportLoads(test.pool, { reports: [{ serverId: 'a', epoch: 'e99', running: 1, waiting: 0 }] }),
  ).toEqual({
    drifts: [],
    due: [],
  });
});
