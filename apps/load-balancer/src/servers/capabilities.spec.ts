import { afterAll, beforeAll, expect, it } from 'vitest';
import { MeteredEngine, openLoadBalancers } from '../load-balancer.fixture';

let lb: Awaited<ReturnType<typeof openLoadBalancers>>;
let engine: MeteredEngine;
beforeAll(async () => {
  engine = await MeteredEngine.start();
  lb = await openLoadBalancers(1);
});
afterAll(async () => {
  await lb.close();
  engine.stop();
});
const capabilitiesOf = async (serverId: string) => (await lb.list()).get(serverId)?.capabilities;

it('asks an engine what it can do when nobody said so, and keeps that for this start', async () => {
  await lb.server('a', engine.url);
  await expect.poll(() => capabilitiesOf('a')).toMatchObject({ version: '0.11.0', maxModelTokens: 4_096 });
  await lb.server('a', engine.url);
  expect(await capabilitiesOf('a')).toMatchObject({ tokenIdsIn: true, pauseModes: ['abort', 'wait', 'keep'] });
});

it('shows what it was told, and refuses what is no capability', async () => {
  await lb.server('b', engine.url, 1, { capabilities: { tokenIdsIn: false, pauseModes: [] } });
  expect(await capabilitiesOf('b')).toEqual({ tokenIdsIn: false, pauseModes: [] });
  for (const capabilities of [{ tokenIdsIn: 'yes' }, { pauseModes: ['sleep'] }, { dataParallelRanks: 0 }, 7]) {
    await expect(lb.server('c', engine.url, 1, { capabilities })).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  }
});
