import type { TailPolicy } from '@broomwagon/contracts';
import { summariseLedger } from '@broomwagon/policies';
import { ENGINE_PRESETS, LENGTH_PRESETS } from '@broomwagon/models';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { SeerDispatcher } from '../baselines/seer-dispatcher';
import { unrouted } from '../baselines/routers';
import { makespanIdentity, simulatedMakespans } from '../experiments/oracle';
import { ProductionRouter } from '../routing/production-router';
import { generatedWorkload, type Workload } from '../workload/workload';
import { Rollout } from './rollout';
import type { RolloutOptions, RolloutOutcome } from './rollout.types';
import { TierMover } from './tier-mover';

const parameters = { ...ENGINE_PRESETS['14b-16k'], kvCapacityTokens: 60_000 };
const POLICIES: TailPolicy[] = [
  { name: 'wait', overProvision: 1 },
  { name: 'regenerate', overProvision: 1.25, sampleOverProvision: 1.5 },
  { name: 'resume', overProvision: 1.5 },
  { name: 'resume', overProvision: 2, maxCuts: 1, maxVersionSpan: 2 },
  { name: 'drip', overProvision: 1.5, dripMode: 'adaptive' },
  { name: 'fixed-concurrency', overProvision: 2, concurrency: 40 },
];

function rollOut(policy: TailPolicy, seed: number, more: Partial<RolloutOptions> = {}): RolloutOutcome {
  return new Rollout({
    workload: generatedWorkload('test', LENGTH_PRESETS['math-short-8k'], seed, 64),
    fleet: { servers: 4, parameters },
    policy,
    groupsPerStep: 8,
    samples: 4,
    groups: 60,
    router: new ProductionRouter(4),
    overheadSeconds: 2,
    ...more,
  }).run();
}

describe('a static batch whose KV costs nothing', () => {
  it('takes T = sum L_j (tau(j) - tau(j - 1)), within 1 %', () => {
    const free = { ...parameters, stepPerKvTokenSeconds: 0, kvCapacityTokens: 1e12, slots: 1e6 };
    const batches = fc.array(fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 150 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(batches, (all) => {
        simulatedMakespans(all, free).forEach((seconds, server) => {
          expect(Math.abs(seconds / makespanIdentity(all[server]!, free) - 1)).toBeLessThan(0.01);
        });
      }),
      { numRuns: 30 * inject('runsFactor') },
    );
  });
});

describe('a rollout', () => {
  it.each(POLICIES)('under $name trains every prompt once, in the exact number of steps', (policy) => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 40 }), (seed, groups) => {
        const { steps, ledger } = rollOut(policy, seed, { groups });
        expect(steps.length).toBe(Math.ceil(groups / 8));
        expect(summariseLedger(ledger).trained.samples).toBe(groups * 4);
      }),
      { numRuns: 5 * inject('runsFactor') },
    );
  });

  it('gives the same output for the same seed, and another one for another', () => {
    for (const policy of POLICIES) {
      const once = JSON.stringify(rollOut(policy, 7));
      expect(JSON.stringify(rollOut(policy, 7))).toBe(once);
      expect(JSON.stringify(rollOut(policy, 8))).not.toBe(once);
    }
  });

  it('loses no token when cut requests are resumed, and is unbiased', () => {
    for (const policy of POLICIES.filter(({ name }) => name !== 'regenerate')) {
      const { ledger, population } = rollOut({ ...policy, maxVersionSpan: undefined }, 3);
      expect(ledger['trained.tokens']).toBe(population.tokens);
      expect(summariseLedger(ledger).waste.tokens).toBe(0);
    }
    const { ledger, population } = rollOut(POLICIES[1]!, 3);
    expect(ledger['trained.tokens']).toBeLessThan(0.95 * population.tokens);
    expect(summariseLedger(ledger).waste.share).toBeGreaterThan(0.1);
  });

  it('keeps the bounds of its policy', () => {
    const { cutsPerGroup, versionSpan } = summariseLedger(rollOut(POLICIES[3]!, 5).ledger);
    expect(cutsPerGroup.max).toBe(1);
    expect(versionSpan.max).toBeLessThanOrEqual(2);
  });

  it('trains the same tokens however requests are dispatched: in chunks, by true lengths, or with moves', () => {
    const base = rollOut(POLICIES[0]!, 9);
    for (const knowledge of ['none', 'context', 'oracle'] as const) {
      const seer = rollOut(POLICIES[0]!, 9, {
        router: unrouted,
        dispatcher: (placement, claim) => new SeerDispatcher(placement, claim, 8_192, knowledge, 1_000),
      });
      expect(seer.ledger['trained.tokens']).toBe(base.ledger['trained.tokens']);
      expect(seer.preemptions).toBe(0);
    }
    for (const policy of ['tier-min', 'tier-cost'] as const) {
      const mover: RolloutOptions['mover'] = (placement, held) =>
        new TierMover(placement, held, { policy, everySteps: 20, tiers: [64, 32, 16, 8, 4, 2], capTokens: 8_192 });
      const graphs = { servers: 4, parameters: { ...parameters, graphTiers: [2, 4, 8, 16, 32, 64] } };
      for (const lockstep of [true, false]) {
        const moved = rollOut(POLICIES[2]!, 9, { mover, fleet: { ...graphs, lockstep } });
        expect(moved.moves).toBeGreaterThan(0);
        expect(moved.ledger['trained.tokens']).toBe(base.population.tokens);
      }
    }
  });

  it('redraws a sample whose tokens were discarded, and no other', () => {
    const drawn = new Set<number>();
    const workload: Workload = {
      name: 'counted',
      capTokens: 1_000,
      promptTokens: () => 10,
      getLength: (prompt, sample, draw) => {
        drawn.add(draw);
        return 50 + ((prompt * 37 + sample * 101 + draw * 13) % 900);
      },
    };
    rollOut(POLICIES[2]!, 1, { workload });
    expect([...drawn]).toEqual([0]);
    rollOut(POLICIES[1]!, 1, { workload });
    expect(drawn.size).toBeGreaterThan(1);
  });
});
