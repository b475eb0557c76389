import { REBALANCE_POLICIES, type ConfigureRebalanceRequest } from '@broomwagon/contracts';
import { ENGINE_PRESETS, type EngineParameters } from '@broomwagon/models';
import { Option, type Command } from 'commander';
import type { EngineSetup, TrainerOptions } from './trainer-options';

export const REBALANCE_MODES = ['off', 'dry-run', 'on'] as const;

/** Setup of simulated engines without a preset. */
const DEFAULT_SETUP: EngineSetup = { model: '14b-16k', lockstep: false, groupPlacement: 'group-spread' };

/** Values for options that are not given, and a setup of simulated engines, which has no options. */
interface Preset {
  options: Partial<TrainerOptions>;
  setup: EngineSetup;
}

/** Presets of the command line, by name. */
const PRESETS: Record<string, Preset> = {
  /**
   * The published rebalance: 235B mixture of experts, graphs of 4 to 64 requests, data-parallel ranks in lockstep,
   * samples of a prompt on one rank. 8 ranks with 64 requests each instead of 32 with 256.
   */
  ascend: {
    options: {
      engines: 8,
      groups: 32,
      samples: 16,
      steps: 1,
      lengths: 'moe-32k',
      tailPolicy: 'wait',
      speed: 60,
      rebalance: 'on',
    },
    setup: { model: '235b-moe', lockstep: true, groupPlacement: 'group-affinity' },
  },
};

export function addRebalanceOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--rebalance <mode>', 'move requests between engines during a step; the baseline is the same without')
        .choices(REBALANCE_MODES)
        .default('off'),
    )
    .addOption(
      new Option('--rebalance-policy <name>', 'how moves are planned; tier-min is the published rule')
        .choices(REBALANCE_POLICIES)
        .default('tier-cost'),
    )
    .addOption(
      new Option(
        '--preset <name>',
        'simulated engines and load; ascend: the published rebalance, made smaller',
      ).choices(Object.keys(PRESETS)),
    );
}

/** Adds the options of the preset that the command line does not give. */
export function withPreset(
  { preset, ...options }: TrainerOptions & { preset?: string },
  isGiven: (name: string) => boolean,
): TrainerOptions {
  const chosen = preset === undefined ? undefined : PRESETS[preset];
  if (chosen === undefined) return { ...options, setup: DEFAULT_SETUP };
  const own = Object.fromEntries(Object.entries(chosen.options).filter(([name]) => !isGiven(name)));
  return { ...options, ...own, setup: chosen.setup };
}

/** Decode steps between two plans in the published rebalance. */
const PUBLISHED_INTERVAL_STEPS = 1_000;
/** Shortest time between plans, milliseconds of wall time; the least that the coordinator accepts. */
const MIN_PLAN_INTERVAL_MS = 100;

/** Settings of the rebalancer for simulated engines: simulated seconds are shorter by the speed of the run. */
export function rebalanceSettings(
  { rebalance: mode, rebalancePolicy: policy, setup }: TrainerOptions,
  speed: number,
): ConfigureRebalanceRequest {
  const engine: EngineParameters = ENGINE_PRESETS[setup.model];
  const tiers = engine.graphTiers?.toReversed();
  return {
    mode,
    policy,
    ...(tiers && { tiers }),
    stepBaseSeconds: engine.stepBaseSeconds / speed,
    stepPerSequenceSeconds: engine.stepPerSequenceSeconds / speed,
    prefillTokensPerSecond: engine.prefillTokensPerSecond * speed,
    minPlanIntervalMs: MIN_PLAN_INTERVAL_MS,
    planIntervalMs: Math.max(MIN_PLAN_INTERVAL_MS, Math.round(60_000 / speed)),
    minMoveIntervalMs: Math.round(60_000 / speed),
    ...(policy === 'tier-min' && { maxRunning: engine.slots, planIntervalSteps: PUBLISHED_INTERVAL_STEPS }),
  };
}
