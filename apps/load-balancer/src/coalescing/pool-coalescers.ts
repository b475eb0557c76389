import { splitPages } from '@broomwagon/state';
import { Coalescer } from './coalescer';

/**
 * Maximum items of one call: enough to share the constant cost of a transition. The store makes two transitions of one
 * call, of about 1 and 0.5 ms.
 */
const BATCH_SIZE = 96;
/** Number of pools from which on idle coalescers are removed. */
const MAX_POOLS = 256;

interface PoolCalls<Item, Result> {
  single: Coalescer<Item, Result>;
  pages: Coalescer<Item[], readonly Result[]>;
}

/** Coalesced calls of one kind. Each pool has calls of its own, because a transition concerns one pool. */
export class PoolCoalescers<Item, Result> {
  private readonly byPool = new Map<string, PoolCalls<Item, Result>>();

  /** @param call `isPage`: the items come from {@link addAll} */
  constructor(private readonly call: (pool: string, items: Item[], isPage: boolean) => Promise<readonly Result[]>) {}

  add(pool: string, item: Item): Promise<Result> {
    return this.of(pool).single.add(item);
  }

  /** The results in the order of the items. Single items may be called between the pages. */
  async addAll(pool: string, items: readonly Item[]): Promise<Result[]> {
    const { pages } = this.of(pool);
    return (await Promise.all(splitPages(items, BATCH_SIZE).map((page) => pages.add(page)))).flat();
  }

  private of(pool: string): PoolCalls<Item, Result> {
    let calls = this.byPool.get(pool);
    if (!calls) {
      if (this.byPool.size >= MAX_POOLS) this.removeIdle();
      calls = {
        single: new Coalescer((items) => this.call(pool, items, false), BATCH_SIZE),
        pages: new Coalescer(async ([page]) => [await this.call(pool, page!, true)], 1),
      };
      this.byPool.set(pool, calls);
    }
    return calls;
  }

  private removeIdle(): void {
    for (const [pool, { single, pages }] of this.byPool) {
      if (single.isIdle && pages.isIdle) this.byPool.delete(pool);
    }
  }
}
