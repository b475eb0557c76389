/** Maximum requests of one claim. */
export const MAX_CLAIM_SIZE = 64;
/** Size of the first claim, and of claims while requests are scarce, so that other workers get requests too. */
export const MIN_CLAIM_SIZE = 8;

/**
 * Size of the next claim. The size doubles after each filled claim, so that a few claims fill the worker. It falls to
 * the minimum after a claim that is not filled, so that workers share scarce requests.
 */
export class ClaimSize {
  private size = MIN_CLAIM_SIZE;

  /** @param free number of requests that this worker can take now */
  next(free: number): number {
    return Math.min(free, this.size);
  }

  observe(asked: number, got: number): void {
    if (got < asked) this.size = MIN_CLAIM_SIZE;
    else if (asked === this.size) this.size = Math.min(MAX_CLAIM_SIZE, this.size * 2);
  }
}
