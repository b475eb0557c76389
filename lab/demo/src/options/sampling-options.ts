import { readFileSync } from 'node:fs';
import { SamplingParameters } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';
import { InvalidArgumentError, type Command } from 'commander';
import { decimal } from './numbers';

/** Adds the options for the sampling of engines. */
export function addSamplingOptions(command: Command): Command {
  return command
    .option('--temperature <x>', 'sampling temperature (default: 1)', decimal(0, 100))
    .option('--top-p <x>', 'nucleus sampling', decimal(0, 1))
    .option('--logprobs', 'return the log probability of each token')
    .option('--sampling <file>', 'JSON file with sampling parameters: topK, minP, stop, logprobs, ...', readSampling);
}

/** Separates these options from the others; an option takes precedence over the file. */
export function takeSampling(options: Record<string, unknown>): {
  sampling: SamplingParameters;
  rest: Record<string, unknown>;
} {
  const { temperature, topP, logprobs, sampling: file, ...rest } = options;
  const named = Object.entries({ temperature, topP, logprobs, seed: rest.seed }).filter(
    ([, value]) => value !== undefined,
  );
  return { sampling: { temperature: 1, ...(file as SamplingParameters), ...Object.fromEntries(named) }, rest };
}

function readSampling(path: string): SamplingParameters {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read as JSON: ${(error as Error).message}.`);
  }
  try {
    return validate(SamplingParameters, value);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
}
