/** A binary heap: the least item by `isBefore` comes first. Equal items have no particular order. */
export class MinHeap<Item> {
  private readonly items: Item[] = [];

  constructor(private readonly isBefore: (one: Item, other: Item) => boolean) {}

  get size(): number {
    return this.items.length;
  }

  peek(): Item | undefined {
    return this.items[0];
  }

  push(item: Item): void {
    const { items } = this;
    let index = items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.isBefore(item, items[parent]!)) break;
      items[index] = items[parent]!;
      index = parent;
    }
    items[index] = item;
  }

  pop(): Item | undefined {
    const { items } = this;
    const least = items[0];
    const last = items.pop();
    if (items.length > 0) this.sink(last!);
    return least;
  }

  clear(): void {
    this.items.length = 0;
  }

  /** Puts an item at the root and moves it down to its place. */
  private sink(item: Item): void {
    const { items } = this;
    const half = items.length >> 1;
    let index = 0;
    while (index < half) {
      let child = 2 * index + 1;
      if (child + 1 < items.length && this.isBefore(items[child + 1]!, items[child]!)) child += 1;
      if (!this.isBefore(items[child]!, item)) break;
      items[index] = items[child]!;
      index = child;
    }
    items[index] = item;
  }
}
