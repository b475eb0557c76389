import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { limitsOf, loadOf, sizeOf } from './fleet-size';
import { FLEETS, tablesOf } from './size.command';

const fleet = { ...FLEETS, gpus: 10_000 };

it('makes the tables of docs/operations/sizing.md', () => {
  const page = readFileSync('docs/operations/sizing.md', 'utf8');
  expect(page).toContain(`\n${tablesOf(FLEETS)}\n`);
  const rarely = tablesOf({ ...FLEETS, gpus: [10_000], saveIntervalSeconds: 60 });
  expect(page).toContain(`\n${rarely}\n`);
});

it('names the part first of which fewer requests fill one instance, and needs more of it for more requests', () => {
  const limits = limitsOf(fleet);
  expect(limits.map(({ inFlight }) => inFlight)).toEqual(limits.map(({ inFlight }) => inFlight).sort((a, b) => a - b));
  const redis = limits.find(({ part }) => part.startsWith('Redis'))!;
  expect(redis.inFlight * loadOf(fleet).redisCores).toBeCloseTo(1, 3);
  const [small, large] = [sizeOf({ ...fleet, gpus: 64 }), sizeOf(fleet)];
  for (const part of ['pools', 'workers', 'gateways', 'coordinators', 'redisMaxmemoryBytes'] as const)
    expect(large[part], part).toBeGreaterThan(small[part]);
  // No pool has more than its share of a core.
  expect(large.redisCores / large.pools).toBeLessThanOrEqual(0.5);
});
