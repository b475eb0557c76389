import { afterAll, beforeAll, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(1);
});
afterAll(() => lb.close());
const readCapabilities = async (serverId: string) => (await lb.list()).get(serverId)?.capabilities;

it('asks an engine for its capabilities if it was registered without them, and keeps them for this start', async () => {
  await lb.server('a');
  await expect.poll(() => readCapabilities('a')).toMatchObject({ version: '0.11.0', maxModelTokens: 4_096 });
  await lb.server('a');
  expect(await readCapabilities('a')).toMatchObject({ tokenIdsIn: true, pauseModes: ['abort', 'wait', 'keep'] });
});

it('shows the capabilities that a server was registered with, and refuses unknown ones', async () => {
  await lb.server('b', 1, { capabilities: { tokenIdsIn: false, pauseModes: [] } });
  expect(await readCapabilities('b')).toEqual({ tokenIdsIn: false, pauseModes: [] });
  for (const capabilities of [{ tokenIdsIn: 'yes' }, { pauseModes: ['sleep'] }, { dataParallelRanks: 0 }, 7]) {
    await expect(lb.server('c', 1, { capabilities })).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  }
});

it('grants a server with the needed features, waits for one, and refuses at once if there can be none', async () => {
  lb.nextPool();
  const w = await lb.worker();
  const needs = ['tokenIdsIn', 'logprobs'];
  await lb.server('text-only', 100, { capabilities: { tokenIdsIn: false } });
  await expect(lb.acquire(w, { needs, waitMs: 20_000 })).rejects.toMatchObject({
    code: 'NO_CAPABLE_SERVER',
    retryable: false,
  });
  // A server may lack no needed feature: the unknown ones of `whole` do not count, and `text-only` lacks one.
  await lb.server('whole', 1, { capabilities: { tokenIdsIn: true } });
  expect(await lb.acquire(w, { needs: ['logprobs'] })).toMatchObject({ serverId: 'text-only' });
  const first = await lb.acquire(w, { needs });
  expect(first.serverId).toBe('whole');
  const waiting = lb.acquire(w, { needs, waitMs: 20_000 });
  await expect.poll(async () => (await lb.status()).waiters).toBe(1);
  await lb.release(first.leaseId);
  expect(await waiting).toMatchObject({ serverId: 'whole' });
  await lb.call('server.remove', { serverId: 'whole' });
  await expect(lb.acquire(w, { needs })).rejects.toMatchObject({ code: 'NO_CAPABLE_SERVER' });
  await expect(lb.acquire(w, { needs: ['wings'] })).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
});
