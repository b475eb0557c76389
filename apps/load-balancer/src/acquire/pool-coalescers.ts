import { Coalescer, type CoalescerOptions } from './coalescer';

/**
 * So many that the fixed cost of a script is shared by many, and so few that it blocks Redis for about 1.4 ms (15 us an
 * acquire; 20, so about 2 ms, with 10,000 servers, see lab/bench/README.md). Two at once keep Redis busy while a reply is
 * being written.
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
