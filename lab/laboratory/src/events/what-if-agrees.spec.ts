import { type FixedPolicy, whatIf } from '@broomwagon/policies';
import { ENGINE_PRESETS, LENGTH_PRESETS, responseLength } from '@broomwagon/models';
import { describe, expect, it } from 'vitest';
import type { RecordedRun } from './recorded-run';
import { simulateRecording } from './simulate-recording';

const GROUPS_PER_STEP = 32;
const SAMPLES = 4;
const FLEET = { servers: 256, engine: ENGINE_PRESETS['14b-16k'], promptTokens: 256, speed: 1 };
const WAIT: FixedPolicy = { name: 'wait', overProvision: 1 };

const lengths = Array.from({ length: 12 * GROUPS_PER_STEP }, (_, group) =>
  Array.from({ length: SAMPLES }, (__, sampleIndex) =>
    responseLength(LENGTH_PRESETS['math-short-16k'], { seed: 7, promptKey: `p${group}`, sampleIndex }),
  ),
);
const run: RecordedRun = {
  job: 'job',
  policy: 'wait',
  rounds: [
    {
      step: 1,
      kind: 'short',
      neededGroups: GROUPS_PER_STEP,
      launchedGroups: GROUPS_PER_STEP,
      openedAtMs: 0,
      completedAtMs: 1,
    },
  ],
  lengths: new Map(lengths.map((group, index) => [`g${index}`, group])),
  samples: SAMPLES,
  capTokens: 16_384,
  missingEvents: 0,
  partialGroups: 0,
};
const recorded = { groups: lengths, groupsPerStep: GROUPS_PER_STEP, time: (tokens: number) => tokens };

/** Results of simulation and replay for one policy; speeds are relative to `wait`. */
function both(policy: FixedPolicy) {
  const simulated = simulateRecording(run, FLEET, policy);
  const replayed = whatIf(recorded, policy);
  return {
    simulated: {
      speed: simulateRecording(run, FLEET, WAIT).stepSeconds / simulated.stepSeconds,
      offPolicyShare: simulated.ledger.offPolicyShare,
      wasteShare: simulated.ledger.waste.share,
      lengthBias: simulated.ledger.lengthBias,
    },
    replayed: {
      speed: whatIf(recorded, WAIT).stepTime / replayed.stepTime,
      offPolicyShare: replayed.offPolicyShare,
      wasteShare: replayed.wasteShare,
      lengthBias: replayed.lengthBias,
    },
  };
}

describe('the replay of the console, against the laboratory, on a fleet with room', () => {
  it.each<FixedPolicy>([
    { name: 'regenerate', overProvision: 1.25 },
    { name: 'regenerate', overProvision: 1.5 },
    { name: 'resume', overProvision: 1.25 },
    { name: 'resume', overProvision: 1.5 },
    { name: 'drip', overProvision: 1.25 },
    { name: 'drip', overProvision: 1.5 },
  ])('agrees on speed and cost: $name $overProvision', (policy) => {
    const { simulated, replayed } = both(policy);
    expect(Math.abs(replayed.speed / simulated.speed - 1)).toBeLessThan(0.03);
    expect(Math.abs(replayed.offPolicyShare - simulated.offPolicyShare)).toBeLessThan(0.02);
    expect(Math.abs(replayed.wasteShare - simulated.wasteShare)).toBeLessThan(0.02);
    expect(Math.abs(replayed.lengthBias - simulated.lengthBias)).toBeLessThan(0.02);
  });
});
