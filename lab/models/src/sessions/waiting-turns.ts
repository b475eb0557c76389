import type { AdmissionTurn } from './admission.types';

export interface WaitingTurn {
  turn: AdmissionTurn;
  lane: 'paused' | 'new';
  score: number;
}

/** Above each time of a paused turn: a turn that leaves the lane of paused turns keeps its score. */
const PRIORITY_UNIT = 2 ** 49;

/** Turns that wait for KV memory, in the lanes of paused and of new sessions; the lowest score is first. */
export class WaitingTurns {
  private readonly lanes: Record<WaitingTurn['lane'], WaitingTurn[]> = { paused: [], new: [] };
  private arrivals = 0;

  get size(): number {
    return this.lanes.paused.length + this.lanes.new.length;
  }

  count(lane: WaitingTurn['lane']): number {
    return this.lanes[lane].length;
  }

  at(lane: WaitingTurn['lane'], index: number): WaitingTurn | undefined {
    return this.lanes[lane][index];
  }

  /** Lets a turn wait; `sinceMs`: when the turn of a paused session began to wait. */
  park(turn: AdmissionTurn, lane: WaitingTurn['lane'], sinceMs: number): void {
    this.arrivals += 1;
    const score = lane === 'paused' ? sinceMs : (9 - (turn.priority ?? 5)) * PRIORITY_UNIT + this.arrivals;
    this.put({ turn, lane, score });
  }

  /** Moves a turn to the other lane. */
  move(waiter: WaitingTurn, lane: WaitingTurn['lane'], sinceMs: number): void {
    this.remove(waiter);
    this.put({ turn: waiter.turn, lane, score: lane === 'paused' ? sinceMs : waiter.score });
  }

  remove(waiter: WaitingTurn): void {
    const lane = this.lanes[waiter.lane];
    lane.splice(lane.indexOf(waiter), 1);
  }

  private put(waiter: WaitingTurn): void {
    const lane = this.lanes[waiter.lane];
    let place = lane.length;
    while (place > 0 && isBefore(waiter, lane[place - 1]!)) place -= 1;
    lane.splice(place, 0, waiter);
  }
}

function isBefore(one: WaitingTurn, other: WaitingTurn): boolean {
  return one.score === other.score ? one.turn.acquireId < other.turn.acquireId : one.score < other.score;
}
