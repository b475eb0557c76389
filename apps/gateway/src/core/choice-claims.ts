import type { BroomwagonError } from '@broomwagon/contracts';

/**
 * Claims of the choices of one request. The first choice claims before the others, and keeps its claim until all
 * choices have ended. So a request that reaches two replicas at once has all its choices in one replica.
 */
export class ChoiceClaims {
  /** Resolves when the first choice has its request or has ended; with the error if the request was refused. */
  readonly settled: Promise<BroomwagonError | undefined>;
  settle!: (refusal: BroomwagonError | undefined) => void;
  private releaseFirst: (() => Promise<void>) | undefined;

  /** @param running choices that have not ended */
  constructor(
    readonly first: object,
    private running: number,
  ) {
    this.settled = new Promise((resolve) => (this.settle = resolve));
  }

  /**
   * Ends a choice. Resolves when its claim is released; the last choice that ends also releases the claim of the first
   * choice.
   */
  async end(choice: object, release: () => Promise<void>): Promise<void> {
    this.running -= 1;
    if (choice === this.first) {
      this.releaseFirst = release;
      this.settle(undefined);
    } else {
      await release();
    }
    if (this.running === 0) await this.releaseFirst?.();
  }
}
