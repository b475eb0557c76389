import { readFileSync } from 'node:fs';
import { parseLengthTrace, uncappedResponseLength, LENGTH_PRESETS, type LengthPresetName } from '@broomwagon/models';
import type { SampleIdentity } from './sample-identity';

/** Source of the true lengths of responses in tokens, which only the simulator knows. */
export interface LengthSource {
  readonly name: string;
  getLength(identity: SampleIdentity): number;
}

/** Opens a source of lengths. @param name of a preset, or path of a file (.jsonl or .csv) */
export function lengthSource(name: string, seed: number): LengthSource {
  if (Object.hasOwn(LENGTH_PRESETS, name)) return presetLengths(name as LengthPresetName, seed);
  if (/\.(jsonl|csv)$/.test(name)) return fileLengths(name);
  throw new RangeError(
    `lengths: ${name} is no preset (${Object.keys(LENGTH_PRESETS).join(', ')}) nor a .jsonl or .csv`,
  );
}

/** Lengths of a preset without its cap: the client's token budget cuts responses, with finish reason `length`. */
function presetLengths(name: LengthPresetName, seed: number): LengthSource {
  return {
    name,
    getLength: ({ promptKey, script }) =>
      uncappedResponseLength(LENGTH_PRESETS[name], { seed, promptKey, sampleIndex: script.sampleKey }),
  };
}

/**
 * Lengths of a file, in the format of `parseLengthTrace`: the i-th length of a prompt is for its sample with seed i
 * (modulo their number). A line with the prompt `*` is for all prompts without a line. Errors name the line.
 */
function fileLengths(path: string): LengthSource {
  const byPrompt = parseLengthTrace(readFileSync(path, 'utf8'), path.endsWith('.csv') ? 'csv' : 'jsonl', path);
  const all = [...byPrompt.values()];
  return {
    name: path,
    getLength: ({ promptKey, promptText, script }) => {
      const lengths =
        byPrompt.get(promptKey) ??
        (promptText === undefined ? undefined : byPrompt.get(promptText)) ??
        byPrompt.get('*') ??
        all[Number.parseInt(promptKey.slice(0, 8), 16) % all.length]!;
      return lengths[script.sampleKey % lengths.length]!;
    },
  };
}
