import { readFile } from 'node:fs/promises';
import { parseLengthTrace, type LengthTrace } from '@broomwagon/models';

/**
 * Reads recorded lengths from a file. @throws RangeError the file is neither .csv nor .jsonl, or has an invalid line
 */
export async function readTrace(path: string): Promise<LengthTrace> {
  const format = /\.(csv|jsonl)$/.exec(path)?.[1];
  if (format === undefined) throw new RangeError(`${path}: expected a .csv or .jsonl file`);
  return parseLengthTrace(await readFile(path, 'utf8'), format as 'csv' | 'jsonl', path);
}
