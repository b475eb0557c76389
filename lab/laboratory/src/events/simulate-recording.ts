import type { TailPolicy } from '@broomwagon/contracts';
import type { EngineParameters } from '@broomwagon/models';
import { runSetup, type RunResult } from '../experiments/run-setup';
import { highest } from '../highest';
import type { Setup } from '../parameters';
import { tracedWorkload, type Redraw } from '../workload/workload';
import type { RecordedRun } from './recorded-run';

export interface SimulatedFleetOptions {
  servers: number;
  engine: EngineParameters;
  promptTokens: number;
  /** Simulated seconds per second of the recording; 1 for real engines. */
  speed: number;
}

/**
 * Rolls the recorded data set out in virtual time, without the pauses between rounds, which the events do not show.
 */
export function simulateRecording(
  run: RecordedRun,
  fleet: SimulatedFleetOptions,
  policy: TailPolicy,
  redraw?: Redraw,
): RunResult {
  const groupsPerStep = highest(run.rounds.map(({ neededGroups }) => neededGroups));
  const setup: Setup = {
    hardware: `${fleet.servers} engines`,
    model: 'recorded',
    capTokens: run.capTokens,
    servers: fleet.servers,
    engine: fleet.engine,
    lengths: UNUSED,
    promptTokens: fleet.promptTokens,
    groupsPerStep,
    samples: run.samples,
  };
  const workload = tracedWorkload('recorded', run.lengths, run.capTokens, fleet.promptTokens, redraw);
  return runSetup(setup, { policy, workload, groups: run.lengths.size, steps: 0, seed: 1, overheadSeconds: 0 });
}

/** Placeholder for a distribution, since the lengths are recorded ones. */
const UNUSED: Setup['lengths'] = {
  medianTokens: 1,
  sigma: 0,
  promptShare: 0,
  endlessShare: 0,
  capTokens: 1,
};

/** Policy of the recording, as far as the events show it: its name, and launched / needed groups of short rounds. */
export function recordedPolicy(run: RecordedRun): TailPolicy {
  if (run.policy === 'auto') return { name: 'auto' };
  const short = run.rounds.filter(
    ({ kind, launchedGroups, neededGroups }) => kind === 'short' && launchedGroups >= neededGroups,
  );
  const overProvision = Math.max(1, ...short.slice(0, 1).map((round) => round.launchedGroups / round.neededGroups));
  const known = ['wait', 'regenerate', 'resume', 'drip'] as const;
  const name = known.find((one) => one === run.policy) ?? 'resume';
  return { name, overProvision: name === 'wait' ? 1 : overProvision };
}

/** Seconds of each recorded round, in simulated time. */
export function recordedSeconds(run: RecordedRun, speed: number): number[] {
  return run.rounds.map(({ openedAtMs, completedAtMs }) => ((completedAtMs - openedAtMs) / 1_000) * speed);
}
