import type { Epoch } from '@broomwagon/contracts';
import { type RoutingRequest } from '@broomwagon/policies';

/** One acquire; see `lb.acquire`. `waits` when the caller may be parked. */
export interface ModelAcquire extends RoutingRequest {
  acquireId: string;
  workerId: string;
  workerEpoch: Epoch;
  priority?: number;
  dpRank?: number;
  boundServerEpoch?: Epoch;
  waits: boolean;
}

/** A parked acquire. */
export interface ModelWaiter {
  acquire: ModelAcquire;
  /** Id of the server to which the waiter's session is bound, or a name of its restrictions. */
  lane: string;
  priority: number;
  arrival: number;
  /** Place among the waiters of the worker with this priority; four places are a turn. */
  place: number;
}

const PLACES_PER_TURN = 4;
/** The places of one priority. */
interface Turns {
  /** Place of the last granted waiter. */
  inHand: number;
  /** Next place by worker. */
  next: Map<string, number>;
}

/**
 * Parked acquires in lanes, each ordered by priority (9 first), then turn, then arrival. Fairness (start-time fair
 * queueing): the waiters of one worker and priority have consecutive places, four to a turn; a new worker starts at the
 * turn in hand, so a burst of one worker is never ahead of the others.
 */
export class WaitingLanes {
  private readonly waiters = new Map<string, ModelWaiter>();
  private readonly turns = new Map<number, Turns>();
  private arrivals = 0;

  get size(): number {
    return this.waiters.size;
  }

  get(acquireId: string): ModelWaiter | undefined {
    return this.waiters.get(acquireId);
  }

  park(acquire: ModelAcquire, lane: string): void {
    const priority = acquire.priority ?? 5;
    const { inHand, next } = this.getTurns(priority);
    const place = Math.max(inHand, next.get(acquire.workerId) ?? 0);
    next.set(acquire.workerId, place + 1);
    this.waiters.set(acquire.acquireId, { acquire, lane, priority, arrival: ++this.arrivals, place });
  }

  /** Removes a waiter: a granted one moves the turn in hand, any other gives its place back to its worker. */
  remove(waiter: ModelWaiter, granted = false): void {
    this.waiters.delete(waiter.acquire.acquireId);
    if (this.waiters.size === 0) return this.turns.clear();
    const turns = this.getTurns(waiter.priority);
    if (granted) {
      turns.inHand = Math.max(turns.inHand, waiter.place);
      return;
    }
    const next = turns.next.get(waiter.acquire.workerId) ?? 0;
    if (next > turns.inHand) turns.next.set(waiter.acquire.workerId, next - 1);
  }

  /** The next waiter that matches. */
  first(matches: (waiter: ModelWaiter) => boolean): ModelWaiter | undefined {
    return this.inOrder(matches)[0];
  }

  /** Waiters that match, in order. */
  inOrder(matches: (waiter: ModelWaiter) => boolean): ModelWaiter[] {
    return [...this.waiters.values()]
      .filter(matches)
      .sort(
        (one, other) =>
          other.priority - one.priority || computeTurn(one) - computeTurn(other) || one.arrival - other.arrival,
      );
  }

  private getTurns(priority: number): Turns {
    let turns = this.turns.get(priority);
    if (!turns) {
      turns = { inHand: 0, next: new Map() };
      this.turns.set(priority, turns);
    }
    return turns;
  }
}

function computeTurn(waiter: ModelWaiter): number {
  return Math.floor(waiter.place / PLACES_PER_TURN);
}
