import { ENGINE_DIALECTS } from '@broomwagon/contracts';
import { type EnginePresetName, ENGINE_PRESETS, LENGTH_PRESETS } from '@broomwagon/models';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { SimulatorOptions } from './simulator';
import { findEntries } from './zoo/zoo';
import { lengthSource } from './tokens/length-source';

/** Fixed time to read a cache from the store, seconds. */
const KV_SETUP_SECONDS = 0.02;

interface CommandLine {
  engines: number;
  dialect: SimulatorOptions['dialect'];
  modelPreset: EnginePresetName;
  lengths: string;
  seed: number;
  speed: number;
  host: string;
  port: number;
  model: string;
  maxModelTokens: number;
  slots?: number;
  kvTokens?: number;
  lockstep: boolean;
  kvStoreBytesPerSecond?: number;
  kvBytesPerToken: number;
  tickMs: number;
  streamMs: number;
  sglangStream: 'cumulative' | 'incremental';
  streamInterval: number;
  noise: boolean;
  sessionCache: boolean;
  zoo: string[];
}

function number(least: number, whole: boolean): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value) || value < least || (whole && !Number.isInteger(value))) {
      throw new InvalidArgumentError(`Expected a ${whole ? 'whole ' : ''}number of at least ${least}.`);
    }
    return value;
  };
}

function zooList(text: string): string[] {
  const names = text.split(',');
  try {
    findEntries(names);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return names;
}

/** Reads the command line. Prints the help or an error and exits, as commander does, unless the options are valid. */
export function readOptions(argv: string[]): SimulatorOptions {
  const presets = Object.keys(ENGINE_PRESETS);
  const command = new Command('engine-simulator')
    .description('Simulated vLLM, SGLang or OpenAI-compatible servers with a continuous-batching model.')
    .option('--engines <n>', 'how many servers', number(1, true), 1)
    .addOption(new Option('--dialect <name>', 'what they answer like').choices(ENGINE_DIALECTS).default('vllm'))
    .addOption(new Option('--model-preset <name>', 'speed and memory').choices(presets).default('14b-16k'))
    .option('--lengths <name|file>', `${Object.keys(LENGTH_PRESETS).join(', ')}, or a .jsonl or .csv`, 'math-short-16k')
    .option('--seed <n>', 'seed of the lengths', number(0, true), 1)
    .option('--speed <x>', 'simulated seconds per wall second', number(0.001, false), 200)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'first port, the others follow; 0 = free ports', number(0, true), 9_001)
    .option('--model <name>', 'model name in responses', 'simulated')
    .option('--max-model-tokens <n>', 'longest prompt + response', number(1, true), 131_072)
    .option('--slots <n>', 'maximum running sequences (default: of the preset)', number(1, true))
    .option('--kv-tokens <n>', 'KV cache (default: of the preset)', number(1, true))
    .option('--lockstep', 'all engines decode in lockstep, as data-parallel ranks do', false)
    .option(
      '--kv-store-bytes-per-second <n>',
      'engines share a KV store that they read at this speed',
      number(1, false),
    )
    .option('--kv-bytes-per-token <n>', 'size of the KV cache of a token in the store', number(1, false), 131_072)
    .option('--tick-ms <n>', 'wall time between two updates of the model', number(1, true), 20)
    .option('--stream-ms <n>', 'wall time between two chunks of a stream', number(0, true), 100)
    .addOption(
      new Option('--sglang-stream <kind>', 'what a chunk of SGLang holds')
        .choices(['cumulative', 'incremental'])
        .default('incremental'),
    )
    .option(
      '--stream-interval <n>',
      'least number of tokens of one event; requests may ask for more',
      number(1, true),
      1,
    )
    .option('--noise', 'tokens are random numbers that depend on the seed only, not on prompt and sample', false)
    .option('--session-cache', 'SGLang counts the sessions that use its prefix cache, until they are closed', false)
    .option('--zoo <names>', 'behaviours of real engines, separated by commas: see docs/engines.md', zooList, [])
    .addHelpText(
      'after',
      '\nREADY_FILE=path: writes {"pid", "servers": [{"serverId", "url"}]} there once all of them listen.\n' +
        'If the file is there already, the engines listen on its ports again.',
    )
    .allowExcessArguments(false)
    .showHelpAfterError();
  const line = command.parse(argv).opts<CommandLine>();
  try {
    return {
      engines: line.engines,
      dialect: line.dialect,
      model: line.model,
      parameters: {
        ...ENGINE_PRESETS[line.modelPreset],
        ...(line.slots !== undefined && { slots: line.slots }),
        ...(line.kvTokens !== undefined && { kvCapacityTokens: line.kvTokens }),
      },
      lengths: lengthSource(line.lengths, line.seed),
      speed: line.speed,
      host: line.host,
      port: line.port,
      tickMs: line.tickMs,
      streamMs: line.streamMs,
      maxModelTokens: line.maxModelTokens,
      cumulative: line.sglangStream === 'cumulative',
      streamInterval: line.streamInterval,
      noise: line.noise,
      sessionCache: line.sessionCache,
      zoo: line.zoo,
      lockstep: line.lockstep,
      ...(line.kvStoreBytesPerSecond !== undefined && {
        kvStore: {
          bytesPerSecond: line.kvStoreBytesPerSecond,
          bytesPerToken: line.kvBytesPerToken,
          setupSeconds: KV_SETUP_SECONDS,
        },
      }),
    };
  } catch (error) {
    return command.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  }
}
