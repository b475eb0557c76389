/** Maximum calls under way at once. With two calls, Redis has work while this process handles a reply. */
const BATCHES_IN_FLIGHT = 2;

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Joins single calls: all items that arrive in one turn of the event loop go into one call. A single item does not wait
 * for others, and under load the calls have more items.
 */
export class Coalescer<Item, Result> {
  private readonly waiting: Waiting<Item, Result>[] = [];
  private inFlight = 0;
  private scheduled = false;

  /**
   * @param call gets the items in the order of arrival and answers in the same order
   * @param batchSize maximum items of one call
   */
  constructor(
    private readonly call: (items: Item[]) => Promise<readonly Result[]>,
    private readonly batchSize: number,
  ) {}

  /** True when no item waits and no call is under way. */
  get isIdle(): boolean {
    return this.waiting.length === 0 && this.inFlight === 0;
  }

  /** Resolves with the answer for an item. When a call fails, all items of the call fail with the same error. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (this.scheduled) return;
      this.scheduled = true;
      setImmediate(() => {
        this.scheduled = false;
        this.flush();
      });
    });
  }

  private flush(): void {
    while (this.waiting.length > 0 && this.inFlight < BATCHES_IN_FLIGHT) {
      const batch = this.waiting.splice(0, this.batchSize);
      this.inFlight++;
      void this.run(batch);
    }
  }

  private async run(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.call(batch.map((waiting) => waiting.item));
      batch.forEach((waiting, index) => waiting.resolve(results[index]!));
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
    this.inFlight--;
    this.flush();
  }
}
