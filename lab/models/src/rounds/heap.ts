/** A binary heap: the least item by `before` comes first. */
export class Heap<Item> {
  private readonly items: Item[] = [];

  constructor(private readonly before: (a: Item, b: Item) => boolean) {}

  peek(): Item | undefined {
    return this.items[0];
  }

  push(item: Item): void {
    const { items, before } = this;
    let position = items.push(item) - 1;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (!before(item, items[parent]!)) break;
      items[position] = items[parent]!;
      position = parent;
    }
    items[position] = item;
  }

  pop(): Item | undefined {
    const { items, before } = this;
    const first = items[0];
    const last = items.pop();
    if (items.length === 0 || last === undefined) return first;
    let position = 0;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && before(items[child + 1]!, items[child]!)) child += 1;
      if (!before(items[child]!, last)) break;
      items[position] = items[child]!;
      position = child;
    }
    items[position] = last;
    return first;
  }
}
