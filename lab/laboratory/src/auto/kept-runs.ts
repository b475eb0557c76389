import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { MeasuredRun } from './compare-auto';

/** Runs in a file, one a line, so that a long comparison can be stopped and continued. */
export class KeptRuns {
  private readonly found = new Map<string, MeasuredRun>();

  /** @param file absent: nothing is kept */
  constructor(private readonly file?: string) {
    if (file === undefined || !existsSync(file)) return;
    for (const line of readFileSync(file, 'utf8')
      .split('\n')
      .filter((text) => text !== '')) {
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
