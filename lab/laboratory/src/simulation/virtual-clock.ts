import { MinHeap } from '@broomwagon/models';

interface Entry {
  atSeconds: number;
  /** Order of scheduling, so that actions due at the same time always run in the same order. */
  order: number;
  action: () => void;
}

/** The clock of a simulation: time jumps from one scheduled action to the next. */
export class VirtualClock {
  private readonly heap = new MinHeap<Entry>(
    (one, other) => one.atSeconds < other.atSeconds || (one.atSeconds === other.atSeconds && one.order < other.order),
  );
  private readonly beforeMoving: (() => void)[] = [];
  private scheduled = 0;
  private seconds = 0;

  /** Simulated seconds since the start. */
  get now(): number {
    return this.seconds;
  }

  at(atSeconds: number, action: () => void): void {
    this.heap.push({ atSeconds: Math.max(atSeconds, this.seconds), order: ++this.scheduled, action });
  }

  after(seconds: number, action: () => void): void {
    this.at(this.seconds + seconds, action);
  }

  /** Calls back after all actions of an instant, before time moves on. */
  onInstantOver(action: () => void): void {
    this.beforeMoving.push(action);
  }

  /** Runs until nothing is scheduled or `isDone` returns true. */
  run(isDone: () => boolean = () => false): void {
    while (!isDone()) {
      const next = this.heap.peek();
      if (next === undefined || next.atSeconds > this.seconds) {
        const scheduledBefore = this.scheduled;
        for (const action of this.beforeMoving) action();
        // The callbacks may have scheduled earlier actions, or actions for this instant.
        if (this.scheduled !== scheduledBefore) continue;
        if (next === undefined) return;
      }
      this.heap.pop();
      this.seconds = next.atSeconds;
      next.action();
    }
  }
}
