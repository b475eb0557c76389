import { Presets, SingleBar } from 'cli-progress';

/** A progress bar on standard error if that is a terminal; else nothing is shown, so that logs stay clean. */
export class Progress {
  private readonly bar?: SingleBar;

  constructor(total: number, what: string) {
    if (!process.stderr.isTTY || total === 0) return;
    const format = `${what} {bar} {value}/{total} {doing}, {eta_formatted} left`;
    this.bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true }, Presets.shades_classic);
    this.bar.start(total, 0, { doing: '' });
  }

  /** Shows the name of the current work. */
  doing(what: string): void {
    this.bar?.update({ doing: what });
  }

  done(): void {
    this.bar?.increment();
  }

  stop(): void {
    this.bar?.stop();
  }
}
