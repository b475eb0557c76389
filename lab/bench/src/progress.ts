import { Presets, SingleBar } from 'cli-progress';

/** A progress bar on a terminal; elsewhere nothing is shown. */
export class Progress {
  private readonly bar = new SingleBar(
    { format: '{bar} {value}/{total} {step}', clearOnComplete: true, hideCursor: true, stream: process.stderr },
    Presets.shades_classic,
  );

  constructor(steps: number) {
    this.bar.start(steps, 0, { step: '' });
  }

  /** Starts the next step. */
  step(name: string): void {
    this.bar.increment(1, { step: name });
  }

  end(): void {
    this.bar.stop();
  }
}
