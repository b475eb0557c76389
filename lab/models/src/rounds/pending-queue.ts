import type { Dispatch } from '@broomwagon/policies';
import { Heap } from './heap';
import type { ModelRequest } from './round-model.types';

/** Amounts to subtract from the arrival number of a request, as in libs/state/src/requests/dispatch.lua. */
const AHEAD = { token: 2 ** 12, probe: 2 ** 38, begun: 2 ** 40 };

/** A request at a place; stale as soon as the request has another ticket. */
interface Entry {
  request: ModelRequest;
  ticket: number;
  place: number;
}

const isCurrent = ({ request, ticket }: Entry): boolean => request.state === 'pending' && request.ticket === ticket;

/** First-in-first-out queue; an entry is removed in constant time at any place, since stale entries are skipped. */
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

/** Pending requests by place, the least first: mostly in the order of arrival, which costs constant time. */
export class PendingQueue {
  private readonly begun = new Lane();
  private readonly fresh = new Lane();
  /** Requests of rounds with an order other than arrival. */
  private readonly ordered = new Heap<Entry>((one, other) => one.place < other.place);
  private arrivals = 0;
  private tickets = 0;

  /** Adds one request. @param front ahead of all requests that were never started; else in the order of arrival */
  add(request: ModelRequest, front: boolean): void {
    const arrival = ++this.arrivals;
    if (front) this.begun.push(this.entry(request, arrival - AHEAD.begun));
    else this.fresh.push(this.entry(request, arrival));
  }

  /** Adds all requests of a new group. @returns the arrival number of the first request */
  addGroup(requests: readonly ModelRequest[], dispatch: Dispatch | undefined): number {
    const { expectedTokens, probes } = dispatch ?? { expectedTokens: 0, probes: false };
    const first = this.arrivals + 1;
    for (const [index, request] of requests.entries()) {
      const arrival = ++this.arrivals;
      const ahead = probes && index === 0 ? AHEAD.probe : expectedTokens * AHEAD.token;
      (ahead === 0 ? this.fresh : this.ordered).push(this.entry(request, arrival - ahead));
    }
    return first;
  }

  /** Moves a pending request to the place for this arrival number and this many expected tokens. */
  expect(request: ModelRequest, arrival: number, tokens: number): void {
    if (request.state === 'pending') this.ordered.push(this.entry(request, arrival - tokens * AHEAD.token));
  }

  /** The next request to claim; it leaves the queue when its state changes. */
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
