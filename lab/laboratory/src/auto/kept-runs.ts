import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { MeasuredRun } from './compare-auto';

/** Runs in a file, one per line, to continue a stopped comparison. The file is valid for one version of the code. */
export class KeptRuns {
  private readonly found = new Map<string, MeasuredRun>();

  /** @param file file of the runs; absent: nothing is kept */
  constructor(private readonly file?: string) {
    if (file === undefined || !existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n');
    // A comparison that was stopped while writing leaves an incomplete last line.
    if (lines.pop() !== '') writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    for (const line of lines) {
      const { run, measured } = JSON.parse(line) as { run: unknown; measured: MeasuredRun };
      this.found.set(JSON.stringify(run), measured);
    }
  }

  /** Returns the measures of this run, and measures it only if the file does not have it. */
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
