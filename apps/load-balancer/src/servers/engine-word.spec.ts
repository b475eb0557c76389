import { afterAll, beforeAll, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(2);
});
afterAll(() => lb.close());
const listed = async () => (await lb.list()).get('a')!;

it('asks an engine that was registered by hand for its weights, also after it has restarted by itself', async () => {
  lb.engine.startedAtSeconds = 1_000;
  lb.engine.weightVersion = '5';
  await lb.server('a');
  await expect.poll(listed).toMatchObject({ weightVersion: 5, engineStartedAtSeconds: 1_000 });
  const w = await lb.worker();
  await lb.call('pool.configure', { requiredWeightVersion: 5 });
  await expect.poll(() => lb.acquire(w).catch(() => undefined)).toMatchObject({ weightVersion: 5 });
  const { epoch } = await listed();

  // The engine is back with the weights of its files before a probe has missed it.
  lb.engine.weightVersion = 'default';
  lb.engine.startedAtSeconds = 2_000;
  await expect.poll(listed).toMatchObject({ state: 'quarantined', weightVersion: 0, inflight: 0 });
  expect((await listed()).epoch).not.toBe(epoch);
  await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
  lb.engine.weightVersion = '5';
  await expect.poll(listed).toMatchObject({ state: 'ready', weightVersion: 5 });
  // On a busy machine the engine may miss two probes, and get no leases until the next probe.
  await expect.poll(() => lb.acquire(w).catch(() => undefined)).toMatchObject({ weightVersion: 5 });
  expect((await lb.audit()).findings).toEqual([]);
});
