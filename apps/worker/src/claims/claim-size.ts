/** Most requests of one claim. */
export const MAX_CLAIM_SIZE = 64;
/** First size, and the size when work is scarce: other workers shall get their part. */
export const MIN_CLAIM_SIZE = 8;

/**
 * How many requests the next claim asks for. It doubles while every claim is filled and falls back as soon as one is
 * not: with plenty of work it fills up in a few calls, with little it leaves some to others.
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
