import type { ModelRequest } from './round-model.types';

/** First in, first out, with removal at any place in constant time: what was removed is skipped when it comes up. */
class Lane {
  private entries: { request: ModelRequest; sequence: number }[] = [];
  private head = 0;

  push(request: ModelRequest, sequence: number): void {
    this.entries.push({ request, sequence });
  }

  peek(): ModelRequest | undefined {
    for (; this.head < this.entries.length; this.head++) {
      const { request, sequence } = this.entries[this.head]!;
      if (request.state === 'pending' && request.sequence === sequence) return request;
    }
    this.entries = [];
    this.head = 0;
    return undefined;
  }
}

/** Pending requests in the order of dispatch: what was begun before goes ahead of what was not. */
export class PendingQueue {
  private readonly begun = new Lane();
  private readonly fresh = new Lane();
  private sequence = 0;

  add(request: ModelRequest, front: boolean): void {
    request.sequence = ++this.sequence;
    (front ? this.begun : this.fresh).push(request, request.sequence);
  }

  /** The next to be given out; it leaves the queue when its state changes. */
  peek(): ModelRequest | undefined {
    return this.begun.peek() ?? this.fresh.peek();
  }
}
