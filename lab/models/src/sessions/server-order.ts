import type { AdmissionServer } from './admission.types';

/** Part of the expected growth that counts in the order of servers. */
const RESERVED = 0.35;
/** KV memory of a server that is not known. */
const ASSUMED_TOKENS = 1_000_000;

interface Place {
  id: string;
  score: number;
  chosen: number;
}

/** Servers by the share of KV memory that sessions use, as the policy `least-kv` orders them. */
export class ServerOrder {
  private readonly places: Place[] = [];
  private readonly placeById = new Map<string, Place>();

  /** Sets the place of a server, which may have changed. */
  place(server: AdmissionServer): void {
    const before = this.placeById.get(server.id);
    const score = Math.floor((1000 * (server.tokens + RESERVED * server.growth)) / (server.capacity ?? ASSUMED_TOKENS));
    const place = { id: server.id, score, chosen: server.chosen };
    if (before) this.places.splice(this.findIndex(before), 1);
    this.places.splice(this.findIndex(place), 0, place);
    this.placeById.set(server.id, place);
  }

  /** Ids of the first servers. */
  first(count: number): string[] {
    return this.places.slice(0, count).map(({ id }) => id);
  }

  private findIndex(place: Place): number {
    let [low, high] = [0, this.places.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.places[middle]!, place)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(one: Place, other: Place): boolean {
  if (one.score !== other.score) return one.score < other.score;
  if (one.chosen !== other.chosen) return one.chosen < other.chosen;
  return one.id < other.id;
}
