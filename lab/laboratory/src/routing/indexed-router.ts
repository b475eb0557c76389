import { MinHeap } from '@broomwagon/models';
import type { Router, RouteRequest } from './router';

interface Place {
  server: number;
  leases: number;
  chosen: number;
}

/** Most servers of equal load that are checked to find a server without a sibling. */
const MAX_EQUALS = 64;
/** Entries per server in the heap before it is built again. */
const STALE_PER_SERVER = 16;

/**
 * The default policy, `least-inflight` with siblings spread, in O(log servers) like the scripts of libs/state, for
 * fleets of thousands of servers. A test compares it with `chooseServer`.
 */
export class IndexedRouter implements Router {
  readonly name = 'least-inflight';
  private readonly leases: number[];
  private readonly chosenAt: number[];
  private readonly groupLeases: Map<string, number>[];
  private chosen = 0;
  /** Entries of servers, stale ones among them: an entry is current if its numbers are. */
  private readonly places = new MinHeap<Place>(
    (one, other) =>
      one.leases - other.leases < 0 ||
      (one.leases === other.leases &&
        (one.chosen < other.chosen || (one.chosen === other.chosen && one.server < other.server))),
  );

  constructor(
    servers: number,
    private readonly maxInflight = Infinity,
  ) {
    this.leases = new Array<number>(servers).fill(0);
    this.chosenAt = new Array<number>(servers).fill(0);
    this.groupLeases = this.leases.map(() => new Map());
    this.leases.forEach((_, server) => this.place(server));
  }

  choose({ groupId }: RouteRequest): number | undefined {
    const passed: Place[] = [];
    let found: Place | undefined;
    while (passed.length < MAX_EQUALS) {
      const next = this.next();
      if (!next || next.leases >= this.maxInflight || next.leases > (passed[0]?.leases ?? Infinity)) break;
      this.places.pop();
      passed.push(next);
      if (!this.groupLeases[next.server]!.has(groupId)) {
        found = next;
        break;
      }
    }
    found ??= passed[0];
    for (const place of passed) if (place !== found) this.places.push(place);
    if (!found) return undefined;
    this.chosenAt[found.server] = ++this.chosen;
    this.count(found.server, groupId, 1);
    return found.server;
  }

  released(server: number, { groupId }: RouteRequest): void {
    this.count(server, groupId, -1);
  }

  moved(from: number, to: number, { groupId }: RouteRequest): void {
    this.count(from, groupId, -1);
    this.count(to, groupId, 1);
  }

  private next(): Place | undefined {
    for (;;) {
      const place = this.places.peek();
      if (!place) return undefined;
      if (place.leases === this.leases[place.server] && place.chosen === this.chosenAt[place.server]) return place;
      this.places.pop();
    }
  }

  private count(server: number, groupId: string, change: number): void {
    this.leases[server]! += change;
    const group = this.groupLeases[server]!;
    const leases = (group.get(groupId) ?? 0) + change;
    if (leases > 0) group.set(groupId, leases);
    else group.delete(groupId);
    this.place(server);
  }

  private place(server: number): void {
    if (this.places.size > STALE_PER_SERVER * this.leases.length) {
      this.places.clear();
      this.leases.forEach((_, other) => other !== server && this.place(other));
    }
    this.places.push({ server, leases: this.leases[server]!, chosen: this.chosenAt[server]! });
  }
}
