/** One acquire; see `lb.acquire`. `waits` when the caller may be parked. */
export interface ModelAcquire {
  acquireId: string;
  workerId: string;
  workerEpoch: number;
  sessionId?: string;
  priority?: number;
  weightVersion?: number;
  waits: boolean;
}

/** A parked acquire. */
export interface ModelWaiter {
  acquire: ModelAcquire;
  /** Id of the server its session is bound to, `*`, or `@<weight version>`. */
  lane: string;
  priority: number;
  arrival: number;
}

/** Parked acquires in lanes, each ordered by priority (9 first), then arrival. */
export class WaitingLanes {
  private readonly waiters = new Map<string, ModelWaiter>();
  private arrivals = 0;

  get size(): number {
    return this.waiters.size;
  }

  get(acquireId: string): ModelWaiter | undefined {
    return this.waiters.get(acquireId);
  }

  park(acquire: ModelAcquire, lane: string): void {
    const priority = acquire.priority ?? 5;
    this.waiters.set(acquire.acquireId, { acquire, lane, priority, arrival: ++this.arrivals });
  }

  remove(waiter: ModelWaiter): void {
    this.waiters.delete(waiter.acquire.acquireId);
  }

  /** The waiter that is next in any of these lanes. */
  first(lanes: readonly string[]): ModelWaiter | undefined {
    return this.inLanesOf((lane) => lanes.includes(lane))[0];
  }

  /** Waiters of the lanes that match, in order. */
  inLanesOf(matches: (lane: string) => boolean): ModelWaiter[] {
    return [...this.waiters.values()]
      .filter((waiter) => matches(waiter.lane))
      .sort((one, other) => other.priority - one.priority || one.arrival - other.arrival);
  }
}
