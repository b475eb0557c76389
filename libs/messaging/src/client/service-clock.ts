/**
 * Estimate of the clock of the services, from replies with a time. Until the first such reply, the estimate is the
 * clock of this process.
 */
export class ServiceClock {
  private offsetMs = 0;

  /**
   * Returns a time on the clock of the services, milliseconds since 1970.
   * @param atMs time of `performance.now()`
   */
  toServiceTime(atMs: number): number {
    return Math.round(toOwnTime(atMs) + this.offsetMs);
  }

  /**
   * Corrects the estimate: a service has read a message at `readAtMs` of its clock. In this process, the message was
   * sent at `sentAtMs` and answered at `answeredAtMs` of `performance.now()`.
   */
  correct(readAtMs: number, sentAtMs: number, answeredAtMs: number): void {
    this.offsetMs = readAtMs - toOwnTime((sentAtMs + answeredAtMs) / 2);
  }
}

function toOwnTime(atMs: number): number {
  return Date.now() - (performance.now() - atMs);
}
