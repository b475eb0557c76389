import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { MeasuredRun } from './compare-auto';

/** Runs in a file, one a line, so that a long comparison can be stopped and continued. They are of one state of the code. */
export class KeptRuns {
  private readonly found = new Map<string, MeasuredRun>();

  /** @param file absent: nothing is kept */
  constructor(private readonly file?: string) {
    if (file === undefined || !existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n');
    // A run that was stopped while it wrote has left a part of a line.
    if (lines.pop() !== '') writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    for (const line of lines) {
      const { run, measured } = JSON.parse(line) as { run: unknown; measured: MeasuredRun };
      this.found.set(JSON.stringify(run), measured);
    }
  }

  /** The numbers of this run; measured if the file does not have them. */
  once(run: object, measure: () => MeasuredRun): MeasuredRun {
    const key = JSON.stringify(run);
    const known = this.found.get(key);
    if (known !== undefined) return known;
    const measured = measure();
    this.found.set(key, measured);
    if (this.file !== undefined) appendFileSync(this.file, `${JSON.stringify({ run, measured })}\n`);
    return measured;
  }
}
