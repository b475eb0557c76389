import { ServerStore } from '@broomwagon/state';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { TestEngine } from '../engine.fixture';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

const HANGING = 300;
const WELL = 20;
/** Rounds of probes after all hanging servers are suspect. */
const ROUNDS = 3;

let lb: LoadBalancers;
let hanging: TestEngine;
let well: TestEngine[];
beforeAll(async () => {
  // Servers are suspect after two seconds.
  lb = await openLoadBalancers(1, { PROBE_INTERVAL_MS: '1000' });
  const start = (count: number) => Promise.all(Array.from({ length: count }, () => TestEngine.start()));
  [hanging, ...well] = (await start(1 + WELL)) as [TestEngine, ...TestEngine[]];
});
afterAll(async () => {
  for (const engine of [hanging, ...well]) engine.stop();
  await lb.close();
});

it('300 servers that accept connections and answer nothing become suspect, and no other server is silent', async () => {
  const hung = Array.from({ length: HANGING }, (_, index) => `hung-${index}`);
  await Promise.all(hung.map((id) => lb.server(id, 100, { endpoint: hanging.url })));
  await Promise.all(well.map(({ url }, index) => lb.server(`well-${index}`, 100, { endpoint: url })));
  await expect.poll(lb.status).toMatchObject({ readyServers: HANGING + WELL });

  const reviews = vi.spyOn(ServerStore.prototype, 'review');
  hanging.hangs = true;
  const replies = () =>
    Promise.all(reviews.mock.results.map(({ value }) => value as ReturnType<ServerStore['review']>));
  const suspected = async () => (await replies()).flatMap((reply) => reply.suspected).sort();
  await expect.poll(async () => (await suspected()).length).toBeGreaterThanOrEqual(HANGING);
  const before = well.map(({ probes }) => probes);
  const rounds = () => Math.min(...well.map(({ probes }, index) => probes - before[index]!));
  await expect.poll(rounds).toBeGreaterThanOrEqual(ROUNDS);
  // Each hanging server is suspected once. Another server may be suspect for a moment when the machine is busy.
  expect((await suspected()).filter((id) => hung.includes(id))).toEqual(hung.toSorted());
  await expect.poll(async () => (await replies()).at(-1)).toMatchObject({ silent: HANGING });
  reviews.mockRestore();
});
