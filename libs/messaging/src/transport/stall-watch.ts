const LOOK_EVERY_MS = 100;
/** Time without any run of the timer after which the process counts as stalled. */
const STALL_MS = 500;

/**
 * Measures how long messages may have waited because this process did not run (stopped, without CPU, in a garbage
 * collection), without the clock of another machine. After a stall, the process sends a ping. All messages before the
 * answer to the ping may have waited.
 */
export class StallWatch {
  private aliveAtMs = performance.now();
  private staleSinceMs: number | undefined;
  private stalls = 0;
  private readonly timer = setInterval(() => void this.queuedMs(), LOOK_EVERY_MS).unref();

  /** @param roundTrip sends a ping on the connection of the messages, and waits for the answer */
  constructor(private readonly roundTrip: () => Promise<void>) {}

  /** Returns how long a message that is read now may have waited for this process, milliseconds; 0 without a stall. */
  queuedMs(): number {
    const now = performance.now();
    if (now - this.aliveAtMs > STALL_MS) {
      this.staleSinceMs ??= this.aliveAtMs;
      this.stalls += 1;
      void this.catchUp(this.stalls, now);
    }
    this.aliveAtMs = now;
    return this.staleSinceMs === undefined ? 0 : now - this.staleSinceMs;
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async catchUp(stall: number, pingedAtMs: number): Promise<void> {
    // An error counts as an answer: a new connection has no old messages.
    await this.roundTrip().catch(() => undefined);
    if (stall === this.stalls) this.staleSinceMs = undefined;
    // Messages after this answer were sent after the ping. Without this line, a process that stalls again and again
    // would count the whole time since its first stall, and refuse every request.
    else if (this.staleSinceMs !== undefined) this.staleSinceMs = Math.max(this.staleSinceMs, pingedAtMs);
  }
}
