const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
type EndSignal = keyof typeof EXIT_CODES;

/** Error that ends a run after a signal. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';

  constructor(readonly exitCode: number) {
    super('interrupted');
  }
}

/** Handles Ctrl-C and SIGTERM: the first signal ends the run cleanly, the second at once. */
export class Interruption {
  private readonly controller = new AbortController();
  private clean = false;
  private atSecond: () => void = () => undefined;
  private reject!: (error: Interrupted) => void;
  private readonly interrupted: Promise<never>;

  constructor(private readonly say: (line: string) => void) {
    this.interrupted = new Promise((_, reject) => (this.reject = reject));
    this.interrupted.catch(() => undefined);
    for (const signal of Object.keys(EXIT_CODES) as EndSignal[]) process.on(signal, () => this.take(signal));
  }

  /** Signal that aborts with the first interruption. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Resolves with the result of the work, or rejects with Interrupted as soon as a signal arrives. */
  async or<T>(work: Promise<T>): Promise<T> {
    // Output of the work after the interruption is dropped.
    work.catch(() => undefined);
    return Promise.race([work, this.interrupted]);
  }

  /** Sets the function that a second signal calls before the process exits. */
  onSecond(kill: () => void): void {
    this.atSecond = kill;
  }

  /** Makes a signal the expected end from now on, with exit code 0. */
  exitsCleanly(): void {
    this.clean = true;
  }

  private take(signal: EndSignal): void {
    if (this.controller.signal.aborted) {
      this.atSecond();
      process.exit(EXIT_CODES[signal]);
    }
    this.say('\nEnding everything (Ctrl-C again to kill) ...');
    this.controller.abort();
    this.reject(new Interrupted(this.clean ? 0 : EXIT_CODES[signal]));
  }
}
