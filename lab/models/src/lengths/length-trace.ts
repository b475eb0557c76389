/** Recorded lengths of responses in tokens, by prompt, in the order of the prompt's samples. */
export type LengthTrace = Map<string, number[]>;

/**
 * Reads recorded lengths. JSONL: {"prompt": text or "promptKey": key, "lengths": [..]} per line. CSV: promptKey,length
 * per line; a first line of another form is the header.
 * @throws RangeError naming a line of another form, or a line with a length that is not a whole number above 0
 */
export function parseLengthTrace(text: string, format: 'csv' | 'jsonl', name: string): LengthTrace {
  const trace: LengthTrace = new Map();
  text.split(/\r?\n/).forEach((line, index) => {
    if (line.trim() === '') return;
    const entry = format === 'csv' ? csvEntry(line) : jsonEntry(line);
    if (
      !entry ||
      entry.lengths.length === 0 ||
      !entry.lengths.every((tokens) => Number.isInteger(tokens) && tokens > 0)
    ) {
      if (index === 0 && format === 'csv') return;
      throw new RangeError(`${name}:${index + 1}: expected a prompt and its lengths, whole numbers above 0`);
    }
    const earlier = trace.get(entry.prompt);
    if (earlier === undefined) trace.set(entry.prompt, entry.lengths);
    else for (const tokens of entry.lengths) earlier.push(tokens);
  });
  if (trace.size === 0) throw new RangeError(`${name}: holds no lengths`);
  return trace;
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
