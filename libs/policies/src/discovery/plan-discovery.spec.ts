import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { planDiscovery, type DiscoveredServer, type ListedEngine } from './plan-discovery';

const engine = fc.record({
  identity: fc.constantFrom('pod-1', 'pod-2', 'pod-3'),
  serverId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  state: fc.constantFrom('ready' as const, 'not-ready' as const, 'terminating' as const),
});
const byServer = { selector: ({ serverId }: { serverId: string }) => serverId };

/** Follows a list as the transitions do; `idle` servers that are drained are removed. */
function follow(listed: readonly ListedEngine[], known: readonly DiscoveredServer[], idle: ReadonlySet<string>) {
  const { withhold, drain } = planDiscovery(listed, known, 50);
  const servers = new Map(known.map((server) => [server.serverId, { ...server }]));
  for (const { serverId } of withhold) servers.get(serverId)!.isWithheld = true;
  for (const { serverId } of drain) servers.get(serverId)!.isDraining = true;
  for (const { serverId, isDraining } of servers.values()) {
    if (isDraining && idle.has(serverId)) servers.delete(serverId);
  }
  for (const { serverId, identity, state } of listed) {
    if (state === 'ready')
      servers.set(serverId, { serverId, listedAs: identity, isWithheld: false, isDraining: false });
  }
  return [...servers.values()];
}

it('leaves no server that can get a lease whose engine is not listed as ready, after any sequence of lists', () => {
  const lists = fc.array(
    fc.record({ listed: fc.uniqueArray(engine, byServer), idle: fc.array(fc.constantFrom(...'abcde')) }),
  );
  fc.assert(
    fc.property(lists, (sequence) => {
      let known: DiscoveredServer[] = [];
      for (const { listed, idle } of sequence) {
        known = follow(listed, known, new Set(idle));
        const usable = known.filter((server) => !server.isWithheld && !server.isDraining);
        const ready = listed.filter(({ state }) => state === 'ready');
        expect(usable.map(({ serverId, listedAs }) => `${serverId} ${listedAs}`).sort()).toEqual(
          ready.map(({ serverId, identity }) => `${serverId} ${identity}`).sort(),
        );
      }
    }),
    { seed: inject('seed'), numRuns: 300 * inject('runsFactor') },
  );
});

it('removes none of the servers while more than half of them are listed no more', () => {
  const known = ['a', 'b', 'c'].map((serverId) => ({
    serverId,
    listedAs: serverId,
    isWithheld: false,
    isDraining: false,
  }));
  const left = (count: number, massPercent = 50) =>
    planDiscovery(
      known.slice(0, count).map(({ serverId }) => ({ serverId, identity: serverId, state: 'ready' })),
      known,
      massPercent,
    );
  expect(left(2)).toEqual({ isMass: false, withhold: [], drain: [known[2]] });
  expect(left(1)).toEqual({ isMass: true, withhold: [known[1], known[2]], drain: [] });
  expect(left(2, 33)).toMatchObject({ isMass: true, drain: [] });
  expect(left(0, 100)).toEqual({ isMass: false, withhold: [], drain: known });
  // The only server of a pool is replaced by another pod at another address.
  expect(planDiscovery([], known.slice(0, 1), 50)).toEqual({ isMass: false, withhold: [], drain: [known[0]] });
});
