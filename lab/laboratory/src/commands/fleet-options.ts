import { type EnginePresetName, ENGINE_PRESETS } from '@broomwagon/models';
import { Option, type Command } from 'commander';
import type { SimulatedFleetOptions } from '../events/simulate-recording';
import { wholeNumber, someNumber } from './numbers';

/** Properties of the engines that the events do not contain. */
export interface FleetOptions {
  servers: number;
  engine: EnginePresetName;
  promptTokens: number;
  speed: number;
}

export function addFleetOptions(command: Command): Command {
  return command
    .option('--servers <n>', 'engines of the recording', wholeNumber(1, 100_000), 8)
    .addOption(
      new Option('--engine <preset>', 'their speed and memory').choices(Object.keys(ENGINE_PRESETS)).default('14b-16k'),
    )
    .option('--prompt-tokens <n>', 'tokens of a prompt', wholeNumber(0, 1_000_000), 64);
}

export function toFleet({ servers, engine, promptTokens, speed }: FleetOptions): SimulatedFleetOptions {
  return { servers, engine: ENGINE_PRESETS[engine], promptTokens, speed };
}

export function addSpeedOption(command: Command): Command {
  return command.option('--speed <x>', 'simulated seconds per second of the recording', someNumber(0.001), 1);
}
