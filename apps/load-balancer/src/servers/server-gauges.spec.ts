import type { ServerStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { expect, it } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { ServerCounts, ServerGauges } from './server-gauges';

const server = (serverId: string, state: ServerStatus['state'], more: Partial<ServerStatus> = {}) =>
  ({ serverId, state, inflight: 0, ...more }) as ServerStatus;

/** The metrics after each list of servers. */
async function show(lists: ServerStatus[][]): Promise<string[]> {
  const metrics = new Metrics('lb');
  const gauges = new ServerGauges(metrics, new LoadBalancerConfig());
  const pages: string[] = [];
  for (const list of lists) {
    const counts = new ServerCounts();
    counts.add(list);
    gauges.show('p', counts);
    pages.push(await metrics.text());
  }
  return pages;
}

it('names servers that take no requests, but none that an operator has taken out of use', async () => {
  const [sick = '', healed] = await show([
    [
      server('a', 'ready', { inflight: 2, load: { running: 2, waiting: 1, kvUse: 0.5, ageMs: 100 } }),
      server('b', 'failed'),
      server('c', 'ready', { hung: true }),
      server('d', 'cordoned'),
      server('e', 'cordoned', { withheld: true }),
      server('f', 'draining'),
      server('g', 'ready', { load: { running: 9, waiting: 9, kvUse: 0.9, ageMs: 100_000 } }),
    ],
    [server('b', 'ready')],
  ]);
  const named = [...sick.matchAll(/server_problem\{pool="p",server="(\w)",state="(\w+)"/g)];
  expect(named.map(([, id, state]) => `${id} ${state}`)).toEqual(['b failed', 'c hung', 'e withheld']);
  expect(sick).toContain('servers_by_state{pool="p",state="cordoned",app="lb"} 2');
  expect(sick).toContain('idle_servers{pool="p",app="lb"} 2');
  // The report of a minute ago says nothing about the present.
  expect(sick).toContain('engine_requests{pool="p",state="waiting",app="lb"} 1');
  expect(sick).toContain('engine_kv_ratio{pool="p",of="greatest",app="lb"} 0.5');
  expect(healed).not.toContain('server_problem{');
});

it('names at most 20 servers of a pool', async () => {
  const [page] = await show([Array.from({ length: 50 }, (_, index) => server(`s${index}`, 'failed'))]);
  expect(page!.match(/server_problem\{/g)).toHaveLength(20);
});
