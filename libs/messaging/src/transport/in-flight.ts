/**
 * Limits the messages that are handled at the same time. Further requests are refused; further events wait in a bounded
 * queue.
 */
export class InFlight {
  private count = 0;
  private readonly waiting: Array<() => void> = [];
  private readonly waiters: Array<() => void> = [];

  /**
   * @param limit maximum messages that are handled at the same time
   * @param maxWaiting maximum events that wait, because callers do not repeat an event, for example a release
   */
  constructor(
    private readonly limit: number,
    private readonly maxWaiting: number,
  ) {}

  /** Starts the work, or lets an event wait, if there is room. Returns false for refused work. */
  admit(start: () => void, mayWait: boolean): boolean {
    if (this.count < this.limit) {
      this.count++;
      start();
      return true;
    }
    if (mayWait && this.waiting.length < this.maxWaiting) {
      this.waiting.push(start);
      return true;
    }
    return false;
  }

  /** Frees a slot, which the next waiting event takes. */
  done(): void {
    const next = this.waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    this.count--;
    if (this.count === 0) {
      for (const resolve of this.waiters.splice(0)) resolve();
    }
  }

  running(): number {
    return this.count;
  }

  inHand(): number {
    return this.count + this.waiting.length;
  }

  /** Resolves when no message is being handled or waits. */
  idle(): Promise<void> {
    return this.inHand() === 0 ? Promise.resolve() : new Promise((resolve) => this.waiters.push(resolve));
  }
}
