import type { Epoch, ServerSigns } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';

const LIMITS = { suspectAfterMs: 4_000, failedAfterMs: 30_000, silentAfterMs: 45_000 };
const PREFILL = { silentAfterMs: LIMITS.silentAfterMs, prefillTokensPerSecond: 1_000 };

let test: ReturnType<typeof openTestStore>;
let worker: { workerId: string; workerEpoch: Epoch };
beforeEach(async () => {
  test = openTestStore();
  worker = await test.worker('w');
  for (const id of ['a', 'b']) await test.server(id, 4);
});
afterEach(() => test.close());

const status = (serverId: string) => test.servers.get(test.pool, serverId);
const review = () => test.servers.review(test.pool, LIMITS);
const probe = async (serverId: string) => (await test.servers.recordProbes(test.pool, [serverId])).states[serverId];

/** Sends a heartbeat with the tokens that calls of a worker get from a server. */
async function report(serverId: string, signs: Partial<ServerSigns> & { silentMs: number }, holder = worker) {
  const { epoch } = await status(serverId);
  await test.workers.heartbeat(test.pool, holder, {
    ...PREFILL,
    servers: [{ serverId, epoch, tokens: 0, ...signs }],
  });
}
const answeredBefore = async (serverId: string, ms: number) => {
  await test.redis.zadd(`${test.root}:servers:watched`, Date.now() - ms, serverId);
};
const hung = async () => (await review()).hung.map(({ serverId, held }) => [serverId, held]);

it('keeps a server whose tokens flow suspect, whatever its probes, and fails it once they stop', async () => {
  const lease = await test.acquire(worker, { boundServerId: 'a' });
  await answeredBefore('a', 100_000);
  await report('a', { silentMs: 0, tokens: 12 });
  expect(await review()).toMatchObject({ suspected: ['a'], failed: [] });
  expect(await status('a')).toMatchObject({ state: 'suspect', inflight: 1 });
  expect(await test.acquire(worker, { boundServerId: 'a' })).toMatchObject({ branch: 'bound-unavailable' });
  expect(await review()).toMatchObject({ failed: [] });
  await test.redis.zadd(`${test.root}:servers:signs`, Date.now() - 31_000, 'a');
  expect(await review()).toMatchObject({ failed: ['a'] });
  expect(await test.release(lease.acquireId, lease.seq)).toMatchObject({ results: [{ reason: 'fenced' }] });
});

it('expires the leases of a server whose callers get no tokens though it answers probes', async () => {
  await test.acquire(worker, { boundServerId: 'a' });
  const { epoch } = await status('a');
  await report('a', { silentMs: 50_000 });
  await report('b', { silentMs: 40_000 });
  expect(await hung()).toEqual([['a', false]]);
  expect(await test.sweep()).toBe(1);
  expect(await probe('a')).toBe('suspect');
  expect(await status('a')).toMatchObject({ state: 'suspect', hung: true, inflight: 0 });
  expect((await status('a')).epoch).not.toBe(epoch);
  const [, [, type, , json]] = (await test.redis.xrange(`${test.root}:events`, '-', '+')).at(-1)! as [string, string[]];
  expect([type, JSON.parse(json!)]).toMatchObject(['server.hung', { serverId: 'a', epoch }]);
  // A late report about calls of the old epoch does not count for the new one.
  await report('a', { silentMs: 60_000, epoch });
  expect(await hung()).toEqual([]);
});

it('does not treat a server as hung while another caller gets tokens or it may process a long prompt', async () => {
  await report('a', { silentMs: 3_000 }, await test.worker('other'));
  await report('a', { silentMs: 90_000 });
  await report('b', { silentMs: 90_000, contextTokens: 60_000 });
  expect(await hung()).toEqual([]);
});

it('does not treat a server as hung while its own count of tokens changes', async () => {
  const { epoch } = await status('a');
  const count = (tokens: number) =>
    test.servers.reportLoads(test.pool, { reports: [{ serverId: 'a', epoch, running: 2, waiting: 0, tokens }] });
  await count(7);
  await count(9);
  await report('a', { silentMs: 90_000 });
  expect(await hung()).toEqual([]);
  await test.redis.del(`${test.root}:servers:signs`);
  await count(9);
  await report('a', { silentMs: 90_000 });
  expect(await hung()).toEqual([['a', false]]);
});

it('does not treat an engine as hung for its silence during a pause', async () => {
  await test.pools.pause(test.pool, { paused: true });
  await report('a', { silentMs: 90_000 });
  expect(await hung()).toEqual([]);
  await test.pools.pause(test.pool, { paused: false });
  expect(await hung()).toEqual([]);
});

it('gives a server that was hung one call at a time, until one of them has a token', async () => {
  await test.configure({ breakerOpenMs: 1 });
  await report('a', { silentMs: 50_000 });
  expect(await hung()).toEqual([['a', false]]);
  await expect.poll(() => probe('a')).toBe('ready');
  const first = await test.acquire(worker, { boundServerId: 'a' });
  expect(first).toMatchObject({ serverId: 'a', branch: 'bound' });
  const next = () => test.acquire(worker, { boundServerId: 'a' });
  // The passing of time alone does not end the trial of this call.
  await expect.poll(async () => (await status('a')).busyUntilMs! < Date.now()).toBe(true);
  expect(await next()).toMatchObject({ branch: 'bound-unavailable' });
  // The caller of the trial has left, so the next call is the trial.
  await test.release(first.acquireId, first.seq);
  await test.servers.warm(test.pool);
  const second = await next();
  expect(second).toMatchObject({ branch: 'bound' });
  await report('a', { silentMs: 0, tokens: 1 });
  await test.servers.warm(test.pool);
  expect(await status('a')).not.toHaveProperty('hung');
  expect(await next()).toMatchObject({ branch: 'bound' });
});

it('only reports hung servers when too few others would be left', async () => {
  for (const id of ['a', 'b']) await report(id, { silentMs: 50_000 });
  expect(await hung()).toEqual([
    ['a', true],
    ['b', true],
  ]);
  await test.servers.cordon(test.pool, { serverId: 'b', cordoned: true });
  await report('b', { silentMs: 0, tokens: 1 });
  expect(await hung()).toEqual([['a', true]]);
  // A cordoned server takes no leases anyway, so it may expire.
  await report('a', { silentMs: 0, tokens: 1 });
  await test.redis.del(`${test.root}:servers:signs`);
  await report('b', { silentMs: 50_000 });
  expect(await hung()).toEqual([['b', false]]);
});

it('shows that events of a server do not come as asked, until they do or the engine starts again', async () => {
  const observed = async () => (await status('a')).observedStreamInterval;
  const { epoch } = await status('a');
  await report('a', { silentMs: 0, tokens: 200, observedStreamInterval: 1 });
  await report('a', { silentMs: 0, tokens: 3 });
  expect(await observed()).toBe(1);
  await report('a', { silentMs: 0, tokens: 200, observedStreamInterval: 0 });
  expect(await observed()).toBeUndefined();
  await report('a', { silentMs: 0, tokens: 200, observedStreamInterval: 500 });
  expect(await observed()).toBe(500);
  for (const startedAtSeconds of [1, 2]) {
    const now = await status('a');
    await test.servers.update(test.pool, { serverId: 'a', epoch: now.epoch, report: { startedAtSeconds } });
  }
  expect(await observed()).toBeUndefined();
  // A late report is about the start before.
  await report('a', { silentMs: 0, observedStreamInterval: 1, epoch });
  expect(await observed()).toBeUndefined();
});
