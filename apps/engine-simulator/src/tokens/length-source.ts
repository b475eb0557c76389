import { readFileSync } from 'node:fs';
import { LENGTH_PRESETS, uncappedResponseLength, type LengthPresetName } from '@broomwagon/policies';
import type { SampleIdentity } from './sample-identity';

/** True length of a response in tokens, known to the simulator alone. */
export interface LengthSource {
  readonly name: string;
  lengthOf(identity: SampleIdentity): number;
}

/** Where lengths come from: the name of a preset, or a file (.jsonl or .csv). */
export function lengthSource(name: string, seed: number): LengthSource {
  if (Object.hasOwn(LENGTH_PRESETS, name)) return presetLengths(name as LengthPresetName, seed);
  if (/\.(jsonl|csv)$/.test(name)) return fileLengths(name);
  throw new RangeError(
    `lengths: ${name} is no preset (${Object.keys(LENGTH_PRESETS).join(', ')}) nor a .jsonl or .csv`,
  );
}

/** Not cut at the preset's cap: the client's token budget does that, with finish reason `length`. */
function presetLengths(name: LengthPresetName, seed: number): LengthSource {
  return {
    name,
    lengthOf: ({ promptKey, script }) =>
      uncappedResponseLength(LENGTH_PRESETS[name], { seed, promptKey, sampleIndex: script.sampleKey }),
  };
}

/**
 * Given lengths. JSONL: {"prompt": text or "promptKey": key, "lengths": [..]} a line, the i-th for the sample with
 * seed i (modulo their number). CSV: promptKey,length a line, in order of samples. A line with the prompt `*` is for
 * all prompts not named. Errors name the line.
 */
function fileLengths(path: string): LengthSource {
  const byPrompt = new Map<string, number[]>();
  readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .forEach((line, index) => {
      if (line.trim() === '') return;
      const entry = path.endsWith('.csv') ? csvEntry(line) : jsonEntry(line);
      if (
        !entry ||
        entry.lengths.length === 0 ||
        !entry.lengths.every((length) => Number.isInteger(length) && length > 0)
      ) {
        if (index === 0 && path.endsWith('.csv')) return; // the header
        throw new RangeError(`${path}:${index + 1}: expected a prompt and its lengths, whole numbers above 0`);
      }
      byPrompt.set(entry.prompt, [...(byPrompt.get(entry.prompt) ?? []), ...entry.lengths]);
    });
  if (byPrompt.size === 0) throw new RangeError(`${path}: holds no lengths`);
  const all = [...byPrompt.values()];
  return {
    name: path,
    lengthOf: ({ promptKey, promptText, script }) => {
      const lengths =
        byPrompt.get(promptKey) ??
        (promptText === undefined ? undefined : byPrompt.get(promptText)) ??
        byPrompt.get('*') ??
        all[Number.parseInt(promptKey.slice(0, 8), 16) % all.length]!;
      return lengths[script.sampleKey % lengths.length]!;
    },
  };
}

interface LengthEntry {
  prompt: string;
  lengths: number[];
}

function csvEntry(line: string): LengthEntry | undefined {
  const comma = line.lastIndexOf(',');
  return comma < 1 ? undefined : { prompt: line.slice(0, comma).trim(), lengths: [Number(line.slice(comma + 1))] };
}

function jsonEntry(line: string): LengthEntry | undefined {
  try {
    const value = JSON.parse(line) as { prompt?: unknown; promptKey?: unknown; lengths?: unknown };
    const prompt = value.prompt ?? value.promptKey;
    return typeof prompt === 'string' && Array.isArray(value.lengths)
      ? { prompt, lengths: value.lengths as number[] }
      : undefined;
  } catch {
    return undefined;
  }
}
