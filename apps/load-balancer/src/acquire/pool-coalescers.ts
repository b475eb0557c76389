import { Coalescer, type CoalescerOptions } from './coalescer';

/**
 * So many that what a transition costs whatever it does is shared by many (the store makes two transitions of it, of
 * some 1 and 0.5 ms); two at once keep Redis busy while a reply is being written.
 */
const OPTIONS: CoalescerOptions = { batchSize: 96, batchesInFlight: 2 };
/** For what comes in pages already. */
export const PAGE_BY_PAGE: CoalescerOptions = { batchSize: 1, batchesInFlight: OPTIONS.batchesInFlight };

/** Pages of the size of one call. */
export function pagesOf<Item>(items: readonly Item[]): Item[][] {
  const { batchSize } = OPTIONS;
  return Array.from({ length: Math.ceil(items.length / batchSize) }, (_, page) =>
    items.slice(page * batchSize, (page + 1) * batchSize),
  );
}
/** Pools remembered; above it idle ones are forgotten. */
const MOST_POOLS = 256;

/** One coalescer for each pool, since a script call concerns one pool. */
export class PoolCoalescers<Item, Result> {
  private readonly byPool = new Map<string, Coalescer<Item, Result>>();

  constructor(
    private readonly call: (pool: string, items: Item[]) => Promise<readonly Result[]>,
    private readonly options: CoalescerOptions = OPTIONS,
  ) {}

  of(pool: string): Coalescer<Item, Result> {
    let coalescer = this.byPool.get(pool);
    if (!coalescer) {
      if (this.byPool.size >= MOST_POOLS) this.forgetIdle();
      coalescer = new Coalescer((items) => this.call(pool, items), this.options);
      this.byPool.set(pool, coalescer);
    }
    return coalescer;
  }

  private forgetIdle(): void {
    for (const [pool, coalescer] of this.byPool) if (coalescer.isIdle) this.byPool.delete(pool);
  }
}
