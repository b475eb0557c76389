/** Maximum requests of one claim. */
export const MAX_CLAIM_SIZE = 64;
/** First size, and the size when requests are scarce, so that other workers get some too. */
export const MIN_CLAIM_SIZE = 8;

/**
 * Number of requests of the next claim: it doubles while every claim is filled, and falls back to the minimum when a
 * claim is not. So a few claims fill the worker, and scarce requests are shared among workers.
 */
export class ClaimSize {
  private size = MIN_CLAIM_SIZE;

  /** @param free requests this worker could take now */
  next(free: number): number {
    return Math.min(free, this.size);
  }

  observe(asked: number, got: number): void {
    if (got < asked) this.size = MIN_CLAIM_SIZE;
    else if (asked === this.size) this.size = Math.min(MAX_CLAIM_SIZE, this.size * 2);
  }
}
