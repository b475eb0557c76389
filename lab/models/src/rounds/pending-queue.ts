import { Heap } from './heap';
import type { ModelRequest } from './round-model.types';

/** What was begun before goes ahead of what was not. */
const FRONT = 2 ** 40;

/** A request at a place; expired as soon as the request has another ticket. */
interface Entry {
  request: ModelRequest;
  ticket: number;
  place: number;
}

const isCurrent = ({ request, ticket }: Entry): boolean => request.state === 'pending' && request.ticket === ticket;

/** First in, first out, with removal at any place in constant time: what was removed is skipped when it comes up. */
class Lane {
  private entries: Entry[] = [];
  private head = 0;

  push(entry: Entry): void {
    this.entries.push(entry);
  }

  peek(): Entry | undefined {
    for (; this.head < this.entries.length; this.head++) {
      const entry = this.entries[this.head]!;
      if (isCurrent(entry)) return entry;
    }
    this.entries = [];
    this.head = 0;
    return undefined;
  }
}

/** Pending requests by their places, the least first: mostly the order of arrival, which costs constant time. */
export class PendingQueue {
  private readonly begun = new Lane();
  private readonly fresh = new Lane();
  /** Those of rounds with another order. */
  private readonly ordered = new Heap<Entry>((one, other) => one.place < other.place);
  private sequence = 0;
  private tickets = 0;

  /** @param ahead how far a request that was not begun goes ahead of its arrival @returns its number in that order */
  add(request: ModelRequest, front: boolean, ahead = 0): number {
    this.sequence += 1;
    const entry = this.entry(request, this.sequence - (front ? FRONT : ahead));
    if (front) this.begun.push(entry);
    else if (ahead === 0) this.fresh.push(entry);
    else this.ordered.push(entry);
    return this.sequence;
  }

  /** Gives a pending request another place. */
  reorder(request: ModelRequest, place: number): void {
    if (request.state === 'pending') this.ordered.push(this.entry(request, place));
  }

  /** The next to be given out; it leaves the queue when its state changes. */
  peek(): ModelRequest | undefined {
    for (let top = this.ordered.peek(); top !== undefined && !isCurrent(top); top = this.ordered.peek()) {
      this.ordered.pop();
    }
    const heads = [this.begun.peek(), this.ordered.peek(), this.fresh.peek()];
    let first: Entry | undefined;
    for (const head of heads) if (head !== undefined && !(first && first.place <= head.place)) first = head;
    return first?.request;
  }

  private entry(request: ModelRequest, place: number): Entry {
    request.ticket = ++this.tickets;
    return { request, ticket: request.ticket, place };
  }
}
