import { expect, it } from 'vitest';
import { inEngine, inject, selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { expectSame, generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

/** Heartbeats of the gateway come three times in its time to live. */
const system = useGateway(4, {
  registered: 'both',
  gateway: { workerTtlMs: 1_500 },
  balancer: { probeIntervalMs: 100, serverFailedAfterMs: 2_500, serverSilentAfterMs: 1_000 },
});

const first = async () => {
  const { servers } = await system.bench.client.call(system.bench.pool, 'server.list', {});
  return servers.find(({ serverId }) => serverId === 's1')!;
};

it('moves the calls of an engine that hangs with a good health, and gives it one call until that has a token', async () => {
  const { engine, client, pool } = system.bench;
  await client.call(pool, 'pool.configure', { breakerOpenMs: 200 });
  const { epoch } = await first();
  await inject(engine.url, { kind: 'hang', count: 3 });
  const replies = Array.from({ length: 6 }, () => system.gateway.post('/generate', generate(4)));
  for (const reply of await Promise.all(replies)) expectSame(reply, await system.uncut(4));
  expect((await first()).epoch).not.toBe(epoch);
  // The engine recovers: the next call on it shows that.
  await client.call(pool, 'server.cordon', { serverId: 's2' });
  const reply = await system.gateway.post('/generate', generate(4));
  expect([reply.status, reply.headers['x-broomwagon-server']]).toEqual([200, 's1']);
  await expect.poll(first).toMatchObject({ state: 'ready' });
  expect(await first()).not.toHaveProperty('hung');
});

it('cuts no stream of an engine whose health fails while its tokens flow, and gives it no new ones', async () => {
  const { engine, client, pool } = system.bench;
  await client.call(pool, 'server.cordon', { serverId: 's2' });
  const controller = new AbortController();
  const reply = fetch(`${system.gateway.url}/generate`, {
    method: 'POST',
    body: JSON.stringify(generate(8_000, { stream: true })),
    signal: controller.signal,
  });
  await system.hasTokens();
  await client.call(pool, 'server.uncordon', { serverId: 's2' });
  const { epoch } = await first();
  await selectZoo(engine.url, { entries: ['unhealthy-while-streaming'] });
  await expect.poll(async () => (await first()).heartbeatAgeMs).toBeGreaterThan(3_000);
  expect(await first()).toMatchObject({ state: 'suspect', epoch, inflight: 1 });
  const next = await system.gateway.post('/generate', generate(4));
  expect(next.headers['x-broomwagon-server']).toBe('s2');
  expect(await inEngine(engine.url)).toBe(1);
  controller.abort();
  await reply.catch(() => undefined);
  // When no tokens flow, the health of the engine counts.
  await expect.poll(first).toMatchObject({ state: 'failed' });
});

it.each([
  ['interval-not-kept', 1, 1],
  ['whole-at-once', LONG, 0],
])('marks a server whose events are not as asked, until they are: %s', async (name, tokens, ignored) => {
  await system.bench.client.call(system.bench.pool, 'server.cordon', { serverId: 's2' });
  const { url } = system.bench.engine;
  // A slow engine would be silent for too long.
  system.bench.engine.setSpeed(20);
  const observed = async () => (await first()).observedStreamInterval;
  await selectZoo(url, { entries: [name] });
  expectSame(await system.gateway.post('/generate', generate(LONG)), await system.uncut(LONG));
  await expect.poll(observed).toBe(tokens);
  expect(await system.metric('stream_intervals_ignored_total')).toBe(ignored);
  await selectZoo(url, { entries: [] });
  expectSame(await system.gateway.post('/generate', generate(LONG)), await system.uncut(LONG));
  await expect.poll(observed).toBeUndefined();
});
