import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';

const SERVER = {
  serverId: 'a',
  endpoint: 'http://a:8000',
  dialect: 'vllm',
  probe: false,
  maxInflight: 50,
  weight: 1,
} as const;
const LIMITS = { suspectAfterMs: 5_000, failedAfterMs: 30_000 };
let test: ReturnType<typeof openTestStore>;
beforeEach(() => {
  test = openTestStore();
});
afterEach(() => test.close());

/** Makes servers look silent for so long. */
async function silence(ageMs: number, ...serverIds: string[]) {
  const lastHeard = serverIds.flatMap((id) => [Date.now() - ageMs, id]);
  await test.redis.zadd(`${test.root}:servers:watched`, ...lastHeard);
}
const review = () => test.servers.review(test.pool, LIMITS);
async function states() {
  const { servers } = await test.servers.list(test.pool);
  return Object.fromEntries(servers.map(({ serverId, state }) => [serverId, state]));
}

it('keeps the leases of a server that registers again with its instanceId, and expires them at a new start', async () => {
  const { epoch } = await test.server('a');
  const worker = await test.worker('w');
  const lease = await test.acquire(worker);
  expect((await test.server('a', 50)).epoch).toBe(epoch);
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ inflight: 1, maxInflight: 50 }]);

  const again = await test.servers.register(test.pool, {
    ...SERVER,
    weightVersion: 0,
  });
  expect(again.epoch).not.toBe(epoch);
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ inflight: 0 }]);
  expect((await test.release(lease.acquireId, lease.seq)).results[0]).toEqual({ released: false, reason: 'fenced' });
  expect(await test.sweep()).toBe(1);
  expect((await test.release(lease.acquireId, lease.seq)).results[0]).toMatchObject({ released: false });
});

it('keeps the leases when a registration without an instanceId is repeated, but not at another registration', async () => {
  const register = (registrationId?: string, instanceId?: string) =>
    test.servers.register(test.pool, { ...SERVER, registrationId, instanceId });
  const { epoch } = await register('call-1');
  await test.acquire(await test.worker('w'));
  expect(await register('call-1')).toMatchObject({ epoch });
  // A probe has learned the start of the engine meanwhile.
  await test.servers.update(test.pool, { serverId: 'a', epoch, report: { startedAtSeconds: 5 } });
  expect(await register('call-1')).toMatchObject({ epoch });
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ inflight: 1, state: 'ready' }]);
  expect((await register('call-1', 'another start')).epoch).not.toBe(epoch);
  const epochs = [await register('call-2'), await register(undefined), await register('call-3')];
  expect(new Set([epoch, ...epochs.map((one) => one.epoch)]).size).toBe(4);
});

it.each([undefined, 'first'])(
  'refuses a late repeat of an earlier registration; instanceId: %s',
  async (instanceId) => {
    const register = (registrationId: string, start?: string) =>
      test.servers.register(test.pool, { ...SERVER, registrationId, instanceId: start });
    await register('call-1', instanceId);
    const { epoch } = await register('call-2', 'second');
    await test.acquire(await test.worker('w'));
    await expect(register('call-1', instanceId)).rejects.toMatchObject({ code: 'FENCED', field: 'registrationId' });
    expect((await test.servers.list(test.pool)).servers).toMatchObject([{ epoch, inflight: 1 }]);
    for (let call = 3; call < 30; call += 1) await register(`call-${call}`, 'second');
    const kept = await test.redis.hget(`${test.root}:server:a`, 'formerRegistrations');
    expect(JSON.parse(kept!)).toHaveLength(8);
  },
);

it('never undercounts a server that was removed and registered again when a release arrives late', async () => {
  const first = await test.server('a');
  const worker = await test.worker('w');
  const old = await test.acquire(worker);
  expect(await test.servers.remove(test.pool, { serverId: 'a' })).toEqual({ removed: true });
  expect(await test.servers.remove(test.pool, { serverId: 'a' })).toEqual({ removed: false });
  const second = await test.server('a');
  expect(second.epoch).not.toBe(first.epoch);
  await test.acquire(worker);
  await test.release(old.acquireId, old.seq);
  await test.sweep();
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ inflight: 1 }]);
});

it('makes a silent server suspect, then failed, and gives it a new epoch without leases when it answers', async () => {
  for (const id of ['a', 'b', 'c']) await test.server(id);
  const before = (await test.servers.list(test.pool)).servers.find(({ serverId }) => serverId === 'a')!;
  const worker = await test.worker('w');
  const leases = [await test.acquire(worker), await test.acquire(worker), await test.acquire(worker)];
  await silence(6_000, 'a');
  expect(await review()).toMatchObject({ suspected: ['a'], failed: [], held: false });
  expect(await states()).toEqual({ a: 'suspect', b: 'ready', c: 'ready' });
  for (let n = 0; n < 6; n++) expect((await test.acquire(worker)).serverId).not.toBe('a');

  await silence(31_000, 'a');
  expect(await review()).toMatchObject({ suspected: [], failed: ['a'] });
  const onA = leases.find((lease) => lease.serverId === 'a')!;
  expect((await test.release(onA.acquireId, onA.seq)).results[0]?.reason).toBe('fenced');
  expect(await test.sweep()).toBe(1);

  await test.servers.recordProbes(test.pool, ['a']);
  expect(await states()).toMatchObject({ a: 'ready' });
  const { servers } = await test.servers.list(test.pool);
  expect(servers.find(({ serverId }) => serverId === 'a')!.epoch).not.toBe(before.epoch);
  expect((await test.acquire(worker)).serverId).toBe('a');
});

it('keeps all servers in use when most are silent at once, also the last one', async () => {
  for (const id of ['a', 'b', 'c']) await test.server(id, 10);
  const worker = await test.worker('w');
  await silence(100_000, 'a', 'b');
  expect(await review()).toMatchObject({ held: true, failed: [], silent: 2, watched: 3 });
  expect(await states()).toEqual({ a: 'suspect', b: 'suspect', c: 'ready' });
  const used = new Set<string>();
  for (let n = 0; n < 6; n++) used.add((await test.acquire(worker)).serverId);
  expect(used).toEqual(new Set(['a', 'b', 'c']));
  // When one answers again, the other is the only silent server, and fails.
  await test.servers.recordProbes(test.pool, ['a']);
  expect(await review()).toMatchObject({ held: false, failed: ['b'] });
});

it('accepts the heartbeat of a server only for its current epoch', async () => {
  const { epoch } = await test.server('a');
  expect((await test.servers.heartbeat(test.pool, { serverId: 'a', epoch })).states).toEqual({ a: 'ready' });
  await expect(test.servers.heartbeat(test.pool, { serverId: 'a', epoch: 'old' })).rejects.toMatchObject({
    code: 'FENCED',
  });
  await expect(test.servers.heartbeat(test.pool, { serverId: 'b', epoch })).rejects.toMatchObject({
    code: 'SERVER_NOT_FOUND',
  });
});

it('lists many servers in pages, each once when nothing changes', async () => {
  const ids = Array.from({ length: 300 }, (_, n) => `server-${n}`);
  await Promise.all(ids.map((id) => test.server(id)));
  const seen: string[] = [];
  let pages = 0;
  for await (const page of test.servers.pages('list', test.pool)) {
    seen.push(...page.servers.map(({ serverId }) => serverId));
    pages++;
  }
  expect(pages).toBeGreaterThan(1);
  expect([...new Set(seen)].sort()).toEqual(ids.sort());
});

it('refuses a registration that would take the id of an engine which answers at another address', async () => {
  const registration = { serverId: 'a', dialect: 'vllm' as const, maxInflight: 1, weight: 1, probe: false };
  const register = (endpoint: string, instanceId?: string, writtenEndpoint = endpoint) =>
    test.servers.register(test.pool, { ...registration, endpoint, instanceId, writtenEndpoint });
  const { epoch } = await register('http://a:8000', 'unknown');
  await expect(register('http://b:8000', 'unknown')).rejects.toMatchObject({
    code: 'SERVER_ID_TAKEN',
    field: 'serverId',
    retryable: true,
  });
  await expect(register('http://b:8000')).rejects.toMatchObject({ code: 'SERVER_ID_TAKEN' });
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ epoch, endpoint: 'http://a:8000' }]);
  // Another spelling of an endpoint that an earlier version has stored is no other address.
  expect((await register('http://127.0.0.1:8000', 'unknown', 'http://a:8000')).epoch).toBe(epoch);
  // The engine has moved, and its old address is drained.
  await test.servers.drain(test.pool, { serverId: 'a', deadlineMs: 60_000 });
  expect((await register('http://b:8000', 'second')).epoch).not.toBe(epoch);
});

it('lets an engine that names its start be registered by another of its addresses', async () => {
  const { epoch } = await test.server('a');
  const known = (await test.servers.get(test.pool, 'a')).endpoint;
  const again = await test.server('a', 50, { endpoint: `${known}0` });
  expect(again.epoch).toBe(epoch);
});
