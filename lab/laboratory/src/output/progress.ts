import { Presets, SingleBar } from 'cli-progress';

/** A bar on a terminal, nothing elsewhere: what is piped or logged stays clean. On standard error. */
export class Progress {
  private readonly bar?: SingleBar;

  constructor(total: number, what: string) {
    if (!process.stderr.isTTY || total === 0) return;
    const format = `${what} {bar} {value}/{total} {doing}, {eta_formatted} left`;
    this.bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true }, Presets.shades_classic);
    this.bar.start(total, 0, { doing: '' });
  }

  /** What comes now. */
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
