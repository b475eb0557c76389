import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { IndexedRouter } from './indexed-router';
import { ProductionRouter } from './production-router';

it('the indexed router chooses as chooseServer does, in any order of requests and releases', () => {
  const action = fc.record({ isRelease: fc.boolean(), which: fc.nat(1_000), group: fc.nat(5) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.array(action, { maxLength: 150 }), (servers, actions) => {
      const index = new IndexedRouter(servers, 6);
      const production = new ProductionRouter(servers, {}, 6);
      const held: { server: number; group: number }[] = [];
      const routeRequest = (group: number) => ({ groupId: `g${group}`, requestId: 'r', contextTokens: 10 });
      for (const { isRelease, which, group } of actions) {
        if (isRelease && held.length > 0) {
          const [one] = held.splice(which % held.length, 1);
          for (const router of [index, production]) router.released(one!.server, routeRequest(one!.group));
          continue;
        }
        const server = production.choose(routeRequest(group));
        expect(index.choose(routeRequest(group))).toBe(server);
        if (server !== undefined) held.push({ server, group });
      }
    }),
    { numRuns: 60 * inject('runsFactor') },
  );
});
