import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { limitsOf, loadOf, sizeOf } from './fleet-size';
import { FLEETS, tablesOf } from './size.command';

const fleet = { ...FLEETS, gpus: 10_000 };

it('prints the tables of docs/operations/sizing.md', () => {
  const page = readFileSync('docs/operations/sizing.md', 'utf8');
  expect(page).toContain(`\n${tablesOf(FLEETS)}\n`);
  const rarely = tablesOf({ ...FLEETS, gpus: [10_000], saveIntervalSeconds: 60 });
  expect(page).toContain(`\n${rarely}\n`);
});

it('lists parts by the requests that fill one instance, and needs more instances for more requests', () => {
  const limits = limitsOf(fleet);
  expect(limits.map(({ inFlight }) => inFlight)).toEqual(limits.map(({ inFlight }) => inFlight).sort((a, b) => a - b));
  const redis = limits.find(({ part }) => part.startsWith('Redis'))!;
  expect(redis.inFlight * loadOf(fleet).redisCores).toBeCloseTo(1, 3);
  const [small, large] = [sizeOf({ ...fleet, gpus: 64 }), sizeOf(fleet)];
  for (const part of ['pools', 'workers', 'gateways', 'coordinators', 'redisMaxmemoryBytes'] as const)
    expect(large[part], part).toBeGreaterThan(small[part]);
  // Each pool keeps within its share of a core.
  expect(large.redisCores / large.pools).toBeLessThanOrEqual(0.5);
});
