import * as fc from 'fast-check';
import { GROUP_PLACEMENTS, ROUTING_POLICIES, type SnapshotServer } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { chooseServer, type RoutingSnapshot } from './choose-server';
import { clockwise } from './policies/consistent-hash';
import { weighed } from './policies/policy';
import { fits } from './restrictions';

const server = (serverId: string) =>
  fc.record({
    serverId: fc.constant(serverId),
    leases: fc.nat(6),
    hasRoom: fc.boolean(),
    weight: fc.constantFrom(0.5, 1, 2),
    weightVersion: fc.nat(2),
    chosen: fc.nat(50),
    tokens: fc.nat(5_000),
    sessions: fc.nat(5),
    turn: fc.nat(300_000),
    groupLeases: fc.nat(3),
    kvUse: fc.double({ min: 0, max: 1, noNaN: true }),
  }) satisfies fc.Arbitrary<SnapshotServer>;
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const snapshot: fc.Arbitrary<RoutingSnapshot> = fc.record({
  settings: fc.record({
    policy: fc.constantFrom(...ROUTING_POLICIES),
    groupPlacement: fc.constantFrom(...GROUP_PLACEMENTS),
    affinityBreakMargin: maybe(fc.oneof(fc.nat(3), fc.constant('never' as const))),
  }),
  request: fc.record({
    acquireId: fc.constantFrom('a1', 'a2', 'a3'),
    requestId: fc.constantFrom('r1', 'r2'),
    contextTokens: fc.constantFrom(0, 5_000),
    minWeightVersion: maybe(fc.nat(2)),
    excludeServers: fc.subarray(['a', 'b']),
  }),
  boundTo: maybe(fc.constantFrom('a', 'b', 'gone')),
  newestWeightVersion: fc.constant(2),
  servers: fc.tuple(server('a'), server('b'), server('c'), server('d')),
});

it('chooses only a server with room that fits, waits only when there is none, and ignores the order given', () => {
  fc.assert(
    fc.property(snapshot, (given) => {
      const choice = chooseServer(given);
      expect(chooseServer({ ...given, servers: given.servers.toReversed() })).toEqual(choice);
      const bound = given.servers.find(({ serverId }) => serverId === given.boundTo);
      if ('server' in choice) {
        const chosen = given.servers.find(({ serverId }) => serverId === choice.server)!;
        expect(chosen.hasRoom && fits(chosen, given.request, 2)).toBe(true);
      } else if (choice.waitsFor === undefined) {
        expect(given.servers.some((one) => one.hasRoom && fits(one, given.request, 2))).toBe(false);
      } else {
        expect(choice.waitsFor).toBe(bound?.serverId);
      }
    }),
  );
});

it('keeps a session that is within the margin, and only breaks it above', () => {
  fc.assert(
    fc.property(snapshot, (given) => {
      const choice = chooseServer(given);
      if (!('server' in choice) || !choice.branch.startsWith('sticky')) return;
      const load = (id: string | undefined) => {
        const one = given.servers.find(({ serverId }) => serverId === id)!;
        return weighed(one.leases, one.weight);
      };
      if (choice.branch === 'sticky-hit') expect(choice.server).toBe(given.boundTo);
      else
        expect(load(given.boundTo)).toBeGreaterThan(load(choice.server) + Number(given.settings.affinityBreakMargin));
    }),
  );
});

it('moves only the ids of a server that leaves the ring, and gives shares by weight', () => {
  const all = ['a', 'b', 'c', 'd'].map((serverId) => ({ serverId, weight: serverId === 'a' ? 3 : 1 }));
  const without = all.filter(({ serverId }) => serverId !== 'b');
  const ids = Array.from({ length: 3_000 }, (_, n) => `session-${n}`);
  let onA = 0;
  for (const id of ids) {
    const [owner, next] = clockwise(all, id);
    expect(clockwise(without, id)[0]).toBe(owner!.serverId === 'b' ? next : owner);
    if (owner!.serverId === 'a') onA++;
  }
  expect(onA / ids.length).toBeGreaterThan(0.4);
  expect(onA / ids.length).toBeLessThan(0.6);
});
