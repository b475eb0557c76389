import { open, readFile, type FileHandle } from 'node:fs/promises';
import type { ResultLine, ResultSink } from './result-line';
import { type HeldStep, trainedGroupsOf } from './held-step';

const BATCH_BYTES = 1_000_000;

/** One line of the record: a step whose results are all in the results file. */
interface RecordedStep extends HeldStep {
  /** Where its results end in the results file. */
  bytes: number;
}

/**
 * Results as JSONL, a step at a time, and beside them a record of the steps that are there as a whole (`<file>.steps`): a
 * trainer that goes on after another one reads there what it holds.
 */
export class ResultsFile implements ResultSink {
  private constructor(
    private readonly results: FileHandle,
    private readonly record: FileHandle,
    private position: number,
    /** What the file held when it was opened. */
    readonly held: readonly HeldStep[],
  ) {}

  /** Creates or empties the files. */
  static async create(path: string): Promise<ResultsFile> {
    return new ResultsFile(await open(path, 'w'), await open(recordOf(path), 'w'), 0, []);
  }

  /** Goes on behind the last step that is there as a whole; what was written of another one is removed. */
  static async resume(path: string): Promise<ResultsFile> {
    const results = await open(path, 'a+').then(async (created) => {
      await created.close();
      return open(path, 'r+');
    });
    const { size } = await results.stat();
    const steps = (await readRecord(recordOf(path))).filter(({ bytes }) => bytes <= size);
    const position = steps.at(-1)?.bytes ?? 0;
    await results.truncate(position);
    const record = await open(recordOf(path), 'w');
    await record.write(steps.map(lineOf).join(''));
    return new ResultsFile(
      results,
      record,
      position,
      steps.map(({ step, groups }) => ({ step, groups })),
    );
  }

  async writeRound({ step }: { step: number }, lines: readonly ResultLine[]): Promise<void> {
    let batch = '';
    for (const [index, line] of lines.entries()) {
      batch += lineOf(line);
      if (batch.length < BATCH_BYTES && index < lines.length - 1) continue;
      this.position += (await this.results.write(batch, this.position)).bytesWritten;
      batch = '';
    }
    // The record must not say more than a machine without power has kept.
    await this.results.datasync();
    const recorded: RecordedStep = { step, bytes: this.position, groups: trainedGroupsOf(lines) };
    await this.record.write(lineOf(recorded));
    await this.record.datasync();
  }

  async close(): Promise<void> {
    await this.results.close();
    await this.record.close();
  }
}

const recordOf = (path: string): string => `${path}.steps`;
const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

/** A last line without an end was being written when its trainer died. */
async function readRecord(path: string): Promise<RecordedStep[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as RecordedStep);
}
