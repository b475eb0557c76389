import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { computeLimits, computeLoad, computeSize } from './fleet-size';
import { FLEETS, formatTables } from './size.command';

const fleet = { ...FLEETS, gpus: 10_000 };

it('prints the tables of docs/operations/sizing.md', () => {
  const page = readFileSync('docs/operations/sizing.md', 'utf8');
  expect(page).toContain(`\n${formatTables(FLEETS)}\n`);
  const rarely = formatTables({ ...FLEETS, gpus: [10_000], saveIntervalSeconds: 60 });
  expect(page).toContain(`\n${rarely}\n`);
});

it('lists parts by the requests that fill one instance, and needs more instances for more requests', () => {
  const limits = computeLimits(fleet);
  expect(limits.map(({ inFlight }) => inFlight)).toEqual(limits.map(({ inFlight }) => inFlight).sort((a, b) => a - b));
  const redis = limits.find(({ part }) => part.startsWith('Redis, main thread'))!;
  expect(redis.inFlight * computeLoad(fleet).redisCores).toBeCloseTo(1, 3);
  const [small, large] = [computeSize({ ...fleet, gpus: 64 }), computeSize(fleet)];
  for (const part of ['pools', 'workers', 'gateways', 'coordinators', 'redisMaxmemoryBytes'] as const)
    expect(large[part], part).toBeGreaterThan(small[part]);
  // Each pool keeps within its share of a core.
  expect(large.redisCores / large.pools).toBeLessThanOrEqual(0.5);
});
