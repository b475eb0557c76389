import { expect, it } from 'vitest';
// @ts-expect-error: a script without types
import * as untyped from '../scripts/tiers.mjs';

const { specTiers } = untyped as { specTiers(): Map<string, string> };
const tiers = specTiers();

it.each([
  ['needs nothing', 'libs/policies/src/tail/tail.spec.ts', 'unit'],
  ['reads files of the product', 'libs/state/src/library/contracts.spec.ts', 'unit'],
  ['uses Redis', 'libs/state/src/leases/batches.spec.ts', 'services'],
  [
    'has a helper that starts a service in the process of the test',
    'apps/gateway/src/fields/fields.spec.ts',
    'services',
  ],
  ['listens on a port', 'lab/engine-simulator/src/adapters.spec.ts', 'services'],
  ['has a helper that starts processes', 'test/exactly-once.spec.ts', 'system'],
  ['starts a process', 'test/reference-trainer.spec.ts', 'system'],
])('a spec that %s (%s) has the tier %s', (_, spec, tier) => {
  expect(tiers.get(spec)).toBe(tier);
});

it('specs of apps and libraries of the tier `system` are specs of processes themselves', () => {
  const specs = [...tiers].filter(([spec, tier]) => tier === 'system' && /^(apps|libs)\//.test(spec));
  expect(specs.filter(([spec]) => !spec.startsWith('libs/testing/'))).toEqual([]);
});
