import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { TestEngine } from '../engine.fixture';
import { openLoadBalancers, type LoadBalancers, type TestWorker } from '../load-balancer.fixture';

let lb: LoadBalancers;
let one: TestEngine;
let other: TestEngine;
let worker: TestWorker;
beforeAll(async () => {
  lb = await openLoadBalancers(1, { PROBE_INTERVAL_MS: '200', SERVER_FAILED_AFTER_MS: '800' });
  [one, other] = [await TestEngine.start(), await TestEngine.start()];
});
afterAll(async () => {
  for (const engine of [one, other]) engine.stop();
  await lb.close();
});
beforeEach(async () => {
  lb.nextPool();
  for (const engine of [one, other]) Object.assign(engine, { models: ['tiny'], isWebServer: false, hangs: false });
  worker = await lb.worker();
});

const serve = (serverId: string, engine: TestEngine) => lb.server(serverId, 100, { endpoint: engine.url });
const listed = async (serverId: string) => (await lb.list()).get(serverId)!;
async function acquirePlaces(model: string): Promise<string[]> {
  const places = new Set<string>();
  for (let n = 0; n < 4; n++) places.add((await lb.acquire(worker, { model })).serverId);
  return [...places].sort();
}

it('places an acquire that names a model or an adapter on a server that lists it', async () => {
  [one.models, other.models] = [['a'], ['b', 'lora']];
  await serve('one', one);
  await serve('other', other);
  await expect.poll(() => listed('one')).toMatchObject({ state: 'ready', models: ['a'] });
  await expect.poll(() => listed('other')).toMatchObject({ state: 'ready', model: 'b', models: ['b', 'lora'] });
  expect(await acquirePlaces('a')).toEqual(['one']);
  for (const model of ['b', 'lora', 'b:lora']) expect(await acquirePlaces(model)).toEqual(['other']);
  const free = await Promise.all([lb.acquire(worker), lb.acquire(worker)]);
  expect(new Set(free.map(({ serverId }) => serverId)).size).toBeGreaterThan(0);
  await expect(lb.acquire(worker, { model: 'c' })).rejects.toMatchObject({
    code: 'MODEL_NOT_FOUND',
    field: 'model',
    message: expect.stringMatching(/"c".*server\.list/),
    retryable: false,
  });
  // An acquire of a model whose only server is full waits for that server.
  await lb.call('server.update', { serverId: 'one', maxInflight: 1 });
  await expect(lb.acquire(worker, { model: 'a' })).rejects.toMatchObject({ code: 'SERVERS_FULL' });
  expect((await lb.audit()).findings).toEqual([]);
});

it('finds a model that was loaded since the last probe', async () => {
  [one.models, other.models] = [['a'], ['b']];
  await serve('one', one);
  await serve('other', other);
  for (let n = 0; n < 3; n++) {
    other.models = ['b', `lora-${n}`];
    await expect.poll(() => acquirePlaces(`lora-${n}`).catch(() => [])).toEqual(['other']);
  }
});

it('leaves the name to the engine while all engines list the same models', async () => {
  await serve('one', one);
  await serve('other', other);
  await expect.poll(lb.status).toMatchObject({ readyServers: 2 });
  expect(await acquirePlaces('whatever')).toEqual(['one', 'other']);
});

it.each([
  ['its start', [1_000, 2_000]],
  ['no start', [undefined, undefined]],
])('forgets the models of an engine that was started with another model and reports %s', async (_, starts) => {
  [one.startedAtSeconds, one.models] = [starts[0], ['a', 'lora']];
  await serve('one', one);
  await expect.poll(() => listed('one')).toMatchObject({ model: 'a', models: ['a', 'lora'] });
  if (starts[0] !== undefined) await expect.poll(() => listed('one')).toMatchObject({ engineStartedAtSeconds: 1_000 });
  const { epoch } = await listed('one');
  await lb.acquire(worker);
  // The new start does not list its models yet: no acquire is sent there under the old model name.
  [one.startedAtSeconds, one.models] = [starts[1], starts[1] === undefined ? ['b'] : []];
  await expect.poll(async () => (await listed('one')).epoch).not.toBe(epoch);
  if (starts[1] !== undefined) {
    expect(await listed('one')).toMatchObject({ state: 'failed', inflight: 0 });
    expect(await listed('one')).not.toHaveProperty('models');
    one.models = ['b'];
  }
  await expect.poll(() => listed('one')).toMatchObject({ state: 'ready', model: 'b', models: ['b'], inflight: 0 });
  expect(await lb.acquire(worker)).toMatchObject({ model: 'b' });
  one.startedAtSeconds = undefined;
});

it('takes a failed server back only when an engine of its dialect describes itself at its address', async () => {
  for (const id of ['well-1', 'well-2']) await serve(id, other);
  await serve('one', one);
  one.hangs = true;
  await expect.poll(async () => (await listed('one')).state).toBe('failed');
  // A web server got the address, and answers every path with a page.
  Object.assign(one, { isWebServer: true, hangs: false });
  const { probes } = one;
  await expect.poll(() => one.probes).toBeGreaterThan(probes + 4);
  expect(await listed('one')).toMatchObject({ state: 'failed' });
  Object.assign(one, { isWebServer: false, models: ['b'] });
  await expect.poll(() => listed('one')).toMatchObject({ state: 'ready', model: 'b' });
});
