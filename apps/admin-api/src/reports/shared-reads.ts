/** Reads whose replies callers share for a time, because every open console sends the same requests. */
export class SharedReads<Reply> {
  private readonly reads = new Map<string, { reply: Promise<Reply>; sinceMs: number }>();

  /** @param sharedMs time after its start in which a read is shared, milliseconds */
  constructor(private readonly sharedMs: number) {}

  /** Returns the reply of a read with this key that has started lately, or else reads. */
  get(key: string, read: () => Promise<Reply>): Promise<Reply> {
    const now = performance.now();
    for (const [name, { sinceMs }] of this.reads) if (now - sinceMs >= this.sharedMs) this.reads.delete(name);
    const shared = this.reads.get(key) ?? { reply: read(), sinceMs: now };
    this.reads.set(key, shared);
    return shared.reply;
  }
}
