import type { Epoch } from '@broomwagon/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(1);
});
afterAll(() => lb.close());

it('reconciles a drift: the holder is asked once, returns leases that it does not hold, and keeps the rest', async () => {
  lb.engine.metrics = { ...lb.engine.metrics, running: 1 };
  await lb.server('a');
  const w = await lb.worker();
  const held = await lb.acquire(w);
  const forgotten = await lb.acquire(w);
  const reconcile = () => lb.call('server.reconcile', { serverId: 'a' });
  const asked = { leases: 2, engineRunning: 1, engineWaiting: 0, drift: 1, returned: 0 };
  await expect.poll(reconcile).toMatchObject({ ...asked, holders: [{ ...w, leases: 2 }] });

  const beat = () => lb.call('worker.heartbeat', { ...w, leaseCount: 2, leaseDigest: 3, attemptCount: 0 });
  expect(await beat()).toMatchObject({ syncAsked: true });
  const { items } = await lb.call('worker.sync', { ...w, kind: 'leases' });
  expect(items.map(({ id }) => id).sort()).toEqual([held.leaseId, forgotten.leaseId].sort());
  await lb.call('lb.release', { leaseId: forgotten.leaseId, outcome: 'unclaimed' });
  expect(await beat()).not.toHaveProperty('syncAsked');
  const settled = await reconcile();
  expect(settled).toMatchObject({ leases: 1, drift: 0, holders: [{ ...w, leases: 1 }] });
  expect(settled).not.toHaveProperty('cursor');
  expect((await lb.release(held.leaseId)).released).toBe(true);
});

it('answers an unknown server, another epoch and an unknown cursor with typed errors', async () => {
  const { epoch } = await lb.server('b');
  const reconcile = (body: { serverId: string; epoch?: Epoch; cursor?: string }) => lb.call('server.reconcile', body);
  await expect(reconcile({ serverId: 'none' })).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND', field: 'serverId' });
  const fenced = reconcile({ serverId: 'b', epoch: epoch + 1 });
  await expect(fenced).rejects.toMatchObject({ code: 'FENCED', field: 'epoch' });
  await expect(reconcile({ serverId: 'b', cursor: 'x' })).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
});
