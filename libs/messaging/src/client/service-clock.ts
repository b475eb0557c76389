/** Estimate of the clock of the services, from replies that name their time. Until the first one: the own clock. */
export class ServiceClock {
  private offsetMs = 0;

  /** @param atMs a time of `performance.now()` @returns the same time on the clock of the services, since 1970 */
  toServiceTime(atMs: number): number {
    return Math.round(toOwnTime(atMs) + this.offsetMs);
  }

  /**
   * Corrects the estimate: a message that was sent at one time and answered at another (both of `performance.now()`) was
   * read at `readAtMs` of the service.
   */
  correct(readAtMs: number, sentAtMs: number, answeredAtMs: number): void {
    this.offsetMs = readAtMs - toOwnTime((sentAtMs + answeredAtMs) / 2);
  }
}

function toOwnTime(atMs: number): number {
  return Date.now() - (performance.now() - atMs);
}
