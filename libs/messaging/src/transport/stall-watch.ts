const LOOK_EVERY_MS = 100;
/** The process was stalled if nothing ran for this long. */
const STALL_MS = 500;

/**
 * Measures how long messages may have waited because this process did not run (stopped, starved, collecting garbage),
 * without comparing clocks of two machines. Messages of that time arrive before the answer to a ping that is sent now.
 */
export class StallWatch {
  private aliveAtMs = performance.now();
  private staleSinceMs: number | undefined;
  private stalls = 0;
  private readonly timer = setInterval(() => void this.queuedMs(), LOOK_EVERY_MS).unref();

  /** @param roundTrip a ping to the NATS server and back on the connection of the messages */
  constructor(private readonly roundTrip: () => Promise<void>) {}

  /** How long a message that is read now may have waited for us, milliseconds; 0 while this process keeps up. */
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
    // A connection that broke brings nothing old any more.
    await this.roundTrip().catch(() => undefined);
    if (stall === this.stalls) this.staleSinceMs = undefined;
    // Messages behind the answer were sent after the ping. Without this, a process that stalls again and again would
    // count the whole time since its first stall, and refuse every request.
    else if (this.staleSinceMs !== undefined) this.staleSinceMs = Math.max(this.staleSinceMs, pingedAtMs);
  }
}
