import { RandomStream, stepSeconds, ENGINE_PRESETS } from '@broomwagon/models';
import { SimulatedFleet } from '../simulation/simulated-fleet';
import { VirtualClock } from '../simulation/virtual-clock';
import type { Experiment } from './experiment';

/**
 * Makespan T = sum L_j (tau(j) - tau(j - 1)), j from the longest: exact for a batch that starts all at once, if KV
 * costs nothing.
 */
export function makespanIdentity(lengths: readonly number[], parameters: Parameters<typeof stepSeconds>[0]): number {
  return lengths
    .toSorted((one, other) => other - one)
    .reduce((sum, length, index) => {
      const below = index === 0 ? 0 : stepSeconds(parameters, index, 0);
      return sum + length * (stepSeconds(parameters, index + 1, 0) - below);
    }, 0);
}

/** Simulated makespan of each server for its batch, for which the makespan identity must hold. */
export function simulatedMakespans(
  batches: readonly (readonly number[])[],
  parameters: Parameters<typeof stepSeconds>[0],
): number[] {
  const clock = new VirtualClock();
  const endedAt = batches.map(() => 0);
  const options = { servers: batches.length, parameters };
  const fleet = new SimulatedFleet<string>(clock, options, (server) => (endedAt[server] = clock.now));
  batches.forEach((lengths, server) =>
    lengths.forEach((remainingTokens, index) =>
      fleet.add(server, { id: `${index}`, contextTokens: 0, prefillTokens: 0, remainingTokens }),
    ),
  );
  clock.run();
  return endedAt;
}

/** Checks the simulation: largest relative error of its makespans. */
export const oracle: Experiment = {
  id: 'oracle',
  run({ seed }) {
    const random = new RandomStream('oracle', seed);
    const parameters = { ...ENGINE_PRESETS['14b-16k'], stepPerKvTokenSeconds: 0, kvCapacityTokens: 1e12, slots: 1e6 };
    const batches = Array.from({ length: 16 }, (_, server) =>
      Array.from({ length: 1 + server * 16 }, () => Math.max(1, Math.round(Math.exp(6.4 + random.normal())))),
    );
    const errors = simulatedMakespans(batches, parameters).map((seconds, server) =>
      Math.abs(seconds / makespanIdentity(batches[server]!, parameters) - 1),
    );
    return { 'oracle.error': Math.max(...errors) };
  },
};
