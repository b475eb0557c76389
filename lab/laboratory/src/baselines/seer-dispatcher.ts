import type { ModelGroup } from '@broomwagon/models';
import type { Claim, Dispatcher } from '../rollout/dispatcher';
import type { Placement } from '../rollout/placement';
import { keptTokens, type Sample } from '../rollout/sample';

/** Knowledge of lengths for the order of requests: none, lengths of finished siblings, or true lengths. */
export type SeerKnowledge = 'none' | 'context' | 'oracle';

interface Waiting {
  group: ModelGroup;
  samples: Sample[];
  /** Length of the longest finished sibling, tokens; the cap until one has finished. */
  estimate: number;
}

const DEFAULT_CHUNK_TOKENS = 8_192;
/** Share of the KV cache that chunks may fill at their ends. */
const KV_SHARE = 0.98;

/**
 * Seer's divided rollout: a request runs in chunks, its KV stays in a pool of the whole fleet between chunks, and each
 * chunk goes to the server with the most free KV, if it fits there to its end: nothing is ever preempted. With context,
 * the first request of each group is a probe, shortest first; the others follow by their longest finished sibling.
 */
export class SeerDispatcher implements Dispatcher {
  private readonly groups = new Map<ModelGroup, Waiting>();
  private readonly probes = new Set<Sample>();
  /** Requests by first arrival (without knowledge), or by most remaining tokens (with true lengths). */
  private queue: Sample[] = [];
  private readonly arrivals = new Map<Sample, number>();
  /** KV that running chunks have at their ends, tokens, by server. */
  private readonly reserved: number[];
  private readonly peaks = new Map<Sample, { server: number; tokens: number }>();

  constructor(
    private readonly placement: Placement,
    private readonly claim: Claim,
    private readonly capTokens: number,
    private readonly knowledge: SeerKnowledge,
    private readonly chunkTokens = DEFAULT_CHUNK_TOKENS,
  ) {
    this.reserved = placement.fleet.engines.map(() => 0);
  }

  pump(): void {
    for (const sample of this.claim(Infinity)) this.enqueue(sample);
    for (let sample = this.next(); sample; sample = this.next()) {
      const untilTokens = Math.min(keptTokens(sample) + this.chunkTokens, this.capTokens);
      const tokens = sample.promptTokens + untilTokens;
      const server = this.serverFor(tokens);
      if (server === undefined) return;
      this.dequeue(sample);
      this.reserved[server]! += tokens;
      this.peaks.set(sample, { server, tokens });
      this.placement.start(sample, server, { untilTokens, hasKv: keptTokens(sample) > 0 });
    }
  }

  left(sample: Sample): boolean {
    this.free(sample);
    const isEnd = keptTokens(sample) >= sample.lengthTokens;
    const waiting = this.groups.get(sample.request.group);
    if (!isEnd) {
      this.enqueue(sample);
      this.pump();
    } else if (waiting) {
      const known = waiting.group.finished > 0 ? waiting.estimate : 0;
      waiting.estimate = Math.max(known, sample.lengthTokens);
    }
    return isEnd;
  }

  forget(sample: Sample): void {
    this.free(sample);
    this.dequeue(sample);
  }

  private enqueue(sample: Sample): void {
    if (this.knowledge !== 'context') {
      this.insert(sample);
      return;
    }
    const { group, index } = sample.request;
    let waiting = this.groups.get(group);
    if (!waiting) this.groups.set(group, (waiting = { group, samples: [], estimate: this.capTokens }));
    if (index === 0 && group.finished === 0) this.probes.add(sample);
    else waiting.samples.push(sample);
  }

  private insert(sample: Sample): void {
    const place = this.getPlace(sample);
    let [low, high] = [0, this.queue.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.getPlace(this.queue[middle]!) <= place) low = middle + 1;
      else high = middle;
    }
    this.queue.splice(low, 0, sample);
  }

  /** Order of a request in the queue: first come, first served, also for later chunks. */
  private getPlace(sample: Sample): number {
    if (this.knowledge === 'oracle') return keptTokens(sample) - sample.lengthTokens;
    const place = this.arrivals.get(sample) ?? this.arrivals.size;
    this.arrivals.set(sample, place);
    return place;
  }

  private next(): Sample | undefined {
    if (this.knowledge !== 'context') return this.queue[0];
    let shortest: Sample | undefined;
    for (const probe of this.probes) {
      if (!shortest || keptTokens(probe) < keptTokens(shortest)) shortest = probe;
    }
    if (shortest) return shortest;
    let longest: Waiting | undefined;
    for (const waiting of this.groups.values()) {
      if (waiting.samples.length > 0 && (!longest || waiting.estimate > longest.estimate)) longest = waiting;
    }
    return longest?.samples[0];
  }

  private dequeue(sample: Sample): void {
    if (this.queue[0] === sample) this.queue.shift();
    else this.queue = this.queue.length > 0 ? this.queue.filter((one) => one !== sample) : this.queue;
    this.probes.delete(sample);
    const waiting = this.groups.get(sample.request.group);
    if (waiting) waiting.samples = waiting.samples.filter((one) => one !== sample);
  }

  /** The server with the most free KV, if the chunk fits there. */
  private serverFor(tokens: number): number | undefined {
    const { kvCapacityTokens, slots } = this.placement.fleet.options.parameters;
    let best: number | undefined;
    this.reserved.forEach((used, server) => {
      if (this.placement.fleet.engines[server]!.runningCount >= slots) return;
      if (best === undefined || used < this.reserved[best]!) best = server;
    });
    const fits = best !== undefined && this.reserved[best]! + tokens <= KV_SHARE * kvCapacityTokens;
    return fits ? best : undefined;
  }

  private free(sample: Sample): void {
    const peak = this.peaks.get(sample);
    if (!peak) return;
    this.reserved[peak.server]! -= peak.tokens;
    this.peaks.delete(sample);
  }
}
