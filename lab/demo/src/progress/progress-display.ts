import type { WriteStream } from 'node:tty';
import { renderProgress, type ProgressView } from './progress-view';

/** Output of the display: standard output, or a similar stream. */
export type ProgressOutput = Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number };

const REDRAW_MS = 100;
const DEFAULT_COLUMNS = 100;

/** Shows live lines, which are rewritten in place on a terminal, and lines that stay, also without a terminal. */
export class ProgressDisplay {
  private drawn = 0;
  private lastDrawMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly output: ProgressOutput) {}

  /** Whether the live view is shown. */
  get live(): boolean {
    return this.output.isTTY === true;
  }

  /** Redraws the live view, ten times a second at most. */
  show(view: ProgressView): void {
    const now = performance.now();
    if (!this.live || now - this.lastDrawMs < REDRAW_MS) return;
    this.lastDrawMs = now;
    this.clear();
    // A terminal of unknown width reports 0.
    const lines = renderProgress(view, this.output.columns || DEFAULT_COLUMNS);
    this.output.write(`${lines.join('\n')}\n`);
    this.drawn = lines.length;
  }

  /** Writes a line that stays, above the live view. */
  say(line: string): void {
    this.clear();
    this.output.write(`${line}\n`);
  }

  /** Erases the live view. */
  clear(): void {
    if (this.drawn === 0) return;
    // Moves up to the start of the first drawn line, and erases to the end of the screen.
    this.output.write(`\u001B[${this.drawn}F\u001B[0J`);
    this.drawn = 0;
  }
}
