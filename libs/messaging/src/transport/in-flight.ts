/** The cap on messages being handled: requests over it are refused, events wait in a bounded queue. */
export class InFlight {
  private count = 0;
  private readonly waiting: Array<() => void> = [];
  private readonly waiters: Array<() => void> = [];

  /**
   * @param limit messages handled at once
   * @param maxWaiting events that may wait; callers do not repeat an event, for example a release
   */
  constructor(
    private readonly limit: number,
    private readonly maxWaiting: number,
  ) {}

  /** Starts the work if there is a slot, keeps an event for later; false when it is refused. */
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

  /** Gives a slot back; the next waiting event takes it. */
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

  /** Resolves when no message is handled or waits. */
  idle(): Promise<void> {
    return this.inHand() === 0 ? Promise.resolve() : new Promise((resolve) => this.waiters.push(resolve));
  }
}
