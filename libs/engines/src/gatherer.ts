/** Gathers the items of one turn of the event loop, which then are sent together. */
export class Gatherer<Item> {
  private items: Item[] = [];

  /**
   * @param most items that are sent together at most
   * @param send must not throw
   */
  constructor(
    private readonly most: number,
    private readonly send: (items: Item[]) => void,
  ) {}

  add(item: Item): void {
    if (this.items.push(item) === 1) setImmediate(() => this.sendAll());
    if (this.items.length === this.most) this.sendAll();
  }

  private sendAll(): void {
    const { items } = this;
    this.items = [];
    if (items.length > 0) this.send(items);
  }
}
