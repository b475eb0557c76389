import type { ServerId } from '@broomwagon/contracts';
import type { FunctionRunner, TextTransition } from '../library/function-runner';
import { grantedOf } from '../leases/grants';
import type { AcquireEntry, Granted, ReleaseEntry, RoutingBounds, ServerAddress, ServerTable } from './routing.types';

type PlainReply = [
  why: '' | 'pool' | 'item' | 'sample',
  lines: string[],
  serverIds: ServerId[],
  descriptions: string[],
];

const ACQUIRE: TextTransition<PlainReply> = { name: 'leases/acquire-plain' };
const RELEASE: TextTransition<number[]> = { name: 'leases/release-plain' };
/** Descriptions of servers remembered; above it all are parsed anew. */
const MOST_DESCRIPTIONS = 20_000;
/** Pools remembered as not plain; above it all are asked again. */
const MOST_POOLS = 1_024;

/** The first of the items asked for, as far as they were plain. */
export interface PlainGrants {
  granted: Granted[];
  /** Only the next item is for the full script: it is due for a snapshot. */
  isSample: boolean;
}

/**
 * The common case of acquire and release in scripts of their own, at a fraction of the cost: a pool by least-inflight
 * where nobody waits, acquires without restrictions, leases that are there. Whatever is otherwise is left to the full
 * scripts with nothing changed for it. A pool that was not plain is not asked for a while.
 */
export class PlainRouting {
  private readonly descriptions = new Map<string, ServerAddress>();
  private readonly notPlainUntilMs = new Map<string, number>();

  constructor(
    private readonly runner: FunctionRunner,
    private readonly bounds: RoutingBounds,
  ) {}

  isPlain(pool: string): boolean {
    const untilMs = this.notPlainUntilMs.get(pool);
    if (untilMs === undefined) return true;
    if (performance.now() < untilMs) return false;
    this.notPlainUntilMs.delete(pool);
    return true;
  }

  /**
   * Grants the first of at most 128 plain acquires, up to one that is for the full script.
   * @param servers gets the servers of what was granted
   * @param brief without the parts of receipts that only their readers need
   * @throws BroomwagonError UNAVAILABLE
   */
  async acquire(
    pool: string,
    items: readonly AcquireEntry[],
    servers: ServerTable,
    brief: boolean,
  ): Promise<PlainGrants> {
    const argv = [String(this.bounds.mostSessions)];
    for (const { acquireId, requestId, workerId, workerEpoch, sessionId, groupId, contextTokens } of items) {
      const session = sessionId ?? '';
      const group = groupId ?? '';
      const hasMore = session !== '' || group !== '' || contextTokens != null;
      argv.push(
        acquireId,
        `${workerId}|${workerEpoch}`,
        requestId,
        hasMore ? `${session}|${group}|${contextTokens ?? ''}` : '',
      );
    }
    const [why, lines, serverIds, descriptions] = await this.runner.runTexts(ACQUIRE, pool, argv);
    if (why === 'pool') this.isNotPlain(pool);
    serverIds.forEach((serverId, index) => (servers[serverId] = this.addressOf(descriptions[index]!)));
    return { granted: lines.map((line) => grantedOf(line, brief)), isSample: why === 'sample' };
  }

  /** Releases what it can of at most 128; false for what the full script must judge. @throws BroomwagonError UNAVAILABLE */
  async release(pool: string, items: readonly ReleaseEntry[]): Promise<boolean[]> {
    const argv = [String(this.bounds.rememberMs)];
    for (const { acquireId, seq } of items) argv.push(acquireId, seq === undefined ? '' : String(seq));
    const released = await this.runner.runTexts(RELEASE, pool, argv);
    if (released.length === 0) this.isNotPlain(pool);
    return items.map((_, index) => released[index] === 1);
  }

  private isNotPlain(pool: string): void {
    if (this.notPlainUntilMs.size >= MOST_POOLS) this.notPlainUntilMs.clear();
    this.notPlainUntilMs.set(pool, performance.now() + this.bounds.askPlainAgainMs);
  }

  private addressOf(description: string): ServerAddress {
    let address = this.descriptions.get(description);
    if (!address) {
      if (this.descriptions.size >= MOST_DESCRIPTIONS) this.descriptions.clear();
      address = JSON.parse(description) as ServerAddress;
      this.descriptions.set(description, address);
    }
    return address;
  }
}

/** True for an acquire that asks nothing of its server, so that the common case may hold. */
export function isPlainAcquire(item: AcquireEntry): boolean {
  return (
    item.weightVersion == null &&
    item.minWeightVersion == null &&
    item.maxWeightLag == null &&
    item.excludeServers == null &&
    item.labels == null &&
    item.needs == null &&
    item.dpRank == null &&
    item.boundServerId == null &&
    !item.explain
  );
}
