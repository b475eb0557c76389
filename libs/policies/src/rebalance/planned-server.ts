import { countKvTokens } from './move-cost';
import type { RebalanceRequest, RebalanceServer } from './rebalance.types';

/**
 * Share of the KV cache that plans use. The rest is for the rounding to blocks, and for lengths that were guessed too
 * short.
 */
export const USABLE_KV_SHARE = 0.98;

/** A server with its planned arrivals and departures. */
export class PlannedServer {
  /** Calls on the server, with planned arrivals and without planned departures. */
  load: number;
  /** Engine time that planned arrivals cost, seconds. */
  stallSeconds = 0;
  private readonly usableKvTokens: number;
  private readonly arrivals: RebalanceRequest[] = [];
  private sortedArrivals?: readonly RebalanceRequest[];
  private sortedResidents?: readonly RebalanceRequest[];
  /** Remaining tokens of each request of the server, ascending. */
  private sortedEnds?: Float64Array;
  /** Lower bound of the peak of KV tokens (tokens now). `mostPeak`: upper bound (all requests at full length). */
  private leastPeak = 0;
  private mostPeak = 0;

  constructor(readonly server: RebalanceServer) {
    const { requests, otherCalls = 0, otherKvTokens = 0, kvCapacityTokens = Infinity } = server;
    this.load = requests.length + otherCalls;
    this.usableKvTokens = kvCapacityTokens * USABLE_KV_SHARE - otherKvTokens;
    if (kvCapacityTokens < Infinity) for (const request of requests) this.count(request, 1);
  }

  /**
   * True if the server may take the request: it has less than `limit` calls, and the KV cache holds all requests at
   * their peak.
   */
  fits(request: RebalanceRequest, limit: number): boolean {
    if (this.load >= limit || this.load >= this.server.capacity) return false;
    const tokens = countKvTokens(request);
    if (this.mostPeak + tokens + request.remainingTokens <= this.usableKvTokens) return true;
    if (this.leastPeak + tokens > this.usableKvTokens) return false;
    return this.peakWith(request) <= this.usableKvTokens;
  }

  take(request: RebalanceRequest, costSeconds: number): void {
    this.arrivals.push(request);
    this.sortedArrivals = undefined;
    this.load += 1;
    this.stallSeconds += costSeconds;
    this.count(request, 1);
  }

  /** Undoes {@link take}. */
  untake(request: RebalanceRequest, costSeconds: number): void {
    // The search for the request starts at the end, because the request is mostly the last arrival.
    this.arrivals.splice(this.arrivals.lastIndexOf(request), 1);
    this.sortedArrivals = undefined;
    this.load -= 1;
    this.stallSeconds -= costSeconds;
    this.count(request, -1);
  }

  /** Returns the decode steps until so many requests have ended that at most `load` calls are left. */
  stepsUntil(load: number): number {
    const excess = this.load - load;
    if (excess <= 0) return 0;
    const ends = (this.sortedEnds ??= sortedEnds(this.server.requests));
    return ends[Math.min(excess, ends.length) - 1] ?? 0;
  }

  /**
   * Returns the highest KV tokens at any later step, with the request. All requests grow by one token a step, so the
   * peak is just before a request ends: all requests with as many remaining tokens are present then.
   */
  private peakWith(request: RebalanceRequest): number {
    const residents = this.residents();
    const arrivals = (this.sortedArrivals ??= longestFirst(this.arrivals));
    let [peak, present, tokens] = [0, 0, 0];
    let [resident, arrival] = [residents[0], arrivals[0]];
    let [next, nextArrival] = [1, 1];
    let newcomer: RebalanceRequest | undefined = request;
    for (;;) {
      let longest = resident;
      if (arrival !== undefined && !(longest && longest.remainingTokens >= arrival.remainingTokens)) longest = arrival;
      if (newcomer !== undefined && !(longest && longest.remainingTokens >= newcomer.remainingTokens))
        longest = newcomer;
      if (longest === undefined) return peak;
      if (longest === resident) resident = residents[next++];
      else if (longest === arrival) arrival = arrivals[nextArrival++];
      else newcomer = undefined;
      present += 1;
      tokens += countKvTokens(longest);
      peak = Math.max(peak, tokens + present * longest.remainingTokens);
    }
  }

  private residents(): readonly RebalanceRequest[] {
    return (this.sortedResidents ??= longestFirst(this.server.requests));
  }

  private count(request: RebalanceRequest, sign: 1 | -1): void {
    const tokens = countKvTokens(request);
    this.leastPeak += sign * tokens;
    this.mostPeak += sign * (tokens + request.remainingTokens);
  }
}

/** Sorts requests by their remaining tokens, most first. */
export function longestFirst(requests: readonly RebalanceRequest[]): RebalanceRequest[] {
  return [...requests].sort((one, other) => other.remainingTokens - one.remainingTokens);
}

/** Remaining tokens of the requests, ascending. */
export function sortedEnds(requests: readonly RebalanceRequest[]): Float64Array {
  const ends = new Float64Array(requests.length);
  requests.forEach(({ remainingTokens }, index) => (ends[index] = remainingTokens));
  return ends.sort();
}
