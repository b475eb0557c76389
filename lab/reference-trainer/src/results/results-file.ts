import { statSync } from 'node:fs';
import { open, readFile, rename, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { UsageError } from '../usage-error';
import type { ResultLine, ResultSink } from './result-line';
import { type HeldStep, listTrainedGroups } from './held-step';

const BATCH_BYTES = 1_000_000;

/** One line of the record: a step whose results are all in the results file. */
interface RecordedStep extends HeldStep {
  /** Length of the results file at the end of the results of this step. */
  bytes: number;
}

/**
 * Results as JSONL, a step at a time, and beside them a record of the complete steps (`<file>.steps`):
 * a trainer that continues the job of another trainer reads from it which groups are held.
 */
export class ResultsFile implements ResultSink {
  private constructor(
    private readonly results: FileHandle,
    private readonly record: FileHandle,
    /** Lengths of both files at the end of the last complete step. */
    private ends: { results: number; record: number },
    /** Steps that the file held when it was opened. */
    readonly held: readonly HeldStep[],
  ) {}

  /** Creates or empties the files. */
  static async create(path: string): Promise<ResultsFile> {
    return new ResultsFile(await open(path, 'w'), await open(toRecordPath(path), 'w'), { results: 0, record: 0 }, []);
  }

  /**
   * Continues after the last complete step; results of an incomplete step are removed.
   * @throws UsageError when there are results without a record: it is unknown which of them are complete
   */
  static async resume(path: string): Promise<ResultsFile> {
    const size = await readSize(path);
    const text = await readRecord(toRecordPath(path));
    if (text === undefined && size > 0) {
      throw new UsageError(
        `${path} contains results, but ${toRecordPath(path)}, the record of their steps, is missing`,
      );
    }
    const steps = parseSteps(text ?? '').filter(({ bytes }) => bytes <= size);
    const kept = steps.map(formatLine).join('');
    // The record first, and as a whole: a trainer that dies here finds the same steps again.
    if (kept !== text) await replace(toRecordPath(path), kept);
    const bytes = steps.at(-1)?.bytes ?? 0;
    const results = await open(path, size > 0 ? 'r+' : 'w');
    await results.truncate(bytes);
    return new ResultsFile(
      results,
      await open(toRecordPath(path), 'r+'),
      { results: bytes, record: Buffer.byteLength(kept) },
      steps.map(({ step, groups }) => ({ step, groups })),
    );
  }

  async writeRound({ step }: { step: number }, lines: readonly ResultLine[]): Promise<void> {
    // Removes the remains of a failed write.
    await this.results.truncate(this.ends.results);
    await this.record.truncate(this.ends.record);
    let end = this.ends.results;
    let batch = '';
    for (const [index, line] of lines.entries()) {
      batch += formatLine(line);
      if (batch.length < BATCH_BYTES && index < lines.length - 1) continue;
      end = await writeAt(this.results, batch, end);
      batch = '';
    }
    // The record must not name results that are not on the disk yet.
    await this.results.datasync();
    const recorded: RecordedStep = { step, bytes: end, groups: listTrainedGroups(lines) };
    const record = await writeAt(this.record, formatLine(recorded), this.ends.record);
    await this.record.datasync();
    this.ends = { results: end, record };
  }

  async close(): Promise<void> {
    await this.results.close();
    await this.record.close();
  }
}

/** Whether a trainer can continue after these results. */
export function holdsSteps(path: string): boolean {
  return (statSync(toRecordPath(path), { throwIfNoEntry: false })?.size ?? 0) > 0;
}

const toRecordPath = (path: string): string => `${path}.steps`;
const formatLine = (value: object): string => `${JSON.stringify(value)}\n`;

/** Writes all of a text: one write may take less than it was given. @returns position of its end */
async function writeAt(file: FileHandle, text: string, position: number): Promise<number> {
  const bytes = Buffer.from(text);
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw new Error('The file accepts no more bytes');
    done += bytesWritten;
  }
  return position + done;
}

/** Writes the new file beside the old one, then renames it: after a power failure, one of the two is complete. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { flush: true });
  await rename(`${path}.new`, path);
}

async function readSize(path: string): Promise<number> {
  return (await ifThere(stat(path)))?.size ?? 0;
}

function readRecord(path: string): Promise<string | undefined> {
  return ifThere(readFile(path, 'utf8'));
}

async function ifThere<T>(looked: Promise<T>): Promise<T | undefined> {
  return looked.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

/** A last line without an end was being written when its trainer died. */
function parseSteps(record: string): RecordedStep[] {
  const lines = record.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as RecordedStep);
}
