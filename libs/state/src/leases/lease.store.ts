import { Injectable } from '@nestjs/common';
import type {
  AcquireItem,
  AcquireManyRequest,
  CancelAcquireReply,
  CancelAcquireRequest,
  ReleaseManyReply,
  ServerId,
  TransferLeaseRequest,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import { splitPages } from '../library/lists';
import { createStoreClass } from '../library/store-of';
import { parseGranted, type Granted, type Refused, type ServerTable, type WaiterAnswers } from './grants';

/** One acquire: the request, its worker, and where a parked call is answered. */
export interface AcquireEntry extends AcquireItem, Pick<AcquireManyRequest, 'workerId' | 'workerEpoch'> {
  /** Inbox of the caller; without it the acquire is never parked. */
  replyTo?: string;
}
export type AcquireResult = Granted | Refused | { parked: true };
export interface AcquiredPage {
  results: AcquireResult[];
  servers: ServerTable;
}
/** One release. With `seq` only the lease of that sequence is meant. */
export interface ReleaseEntry {
  acquireId: string;
  seq?: number;
  /** Outcome of the call for the breaker; absent when the call says nothing about the server. */
  outcome?: 'finished' | 'failed' | 'busy';
  /** Pause for which a `busy` engine asked, milliseconds; absent if it named none. */
  retryAfterMs?: number;
  /** Tokens that the call generated. */
  tokens?: number;
}
export interface ReleasedPage extends WaiterAnswers, ReleaseManyReply {
  /** Servers that the breaker made suspect. */
  broken?: ServerId[];
  /** Whether most servers fail calls of other prompts, if all of them answer probes. */
  unheard?: boolean;
}
/** A transfer. With `seq` only the lease of that sequence is meant. */
export interface TransferEntry extends Omit<TransferLeaseRequest, 'leaseId' | 'reason'> {
  acquireId: string;
  seq?: number;
}
/** The answers of waiters are absent in a repeat. */
export interface Transferred {
  granted: Granted;
  servers: ServerTable;
  answers?: WaiterAnswers['answers'];
  waiterServers?: ServerTable;
  more?: boolean;
}
/** Result of a cancelled acquire. `answers` contains the reply to each cancelled waiter. */
export interface Cancelled extends WaiterAnswers, Omit<CancelAcquireReply, 'leaseId'> {
  /** Sequence of the lease, if the acquire was granted before. */
  seq?: number;
}
export interface SweptPage extends WaiterAnswers {
  /** Number of returned leases. */
  returned: number;
  /** Further waiters may be granted: call {@link WaiterStore.grant}. */
  grantsLeft: boolean;
}

export class LeaseBounds {
  /** Maximum parked acquires. */
  maxWaiters = 100_000;
  /** How long the answer to a released acquire, or a tombstone, is kept, milliseconds. */
  rememberMs = 120_000;
}

/** A page as the script replies it: a new grant is a line of the ring of decisions. */
type RawAcquiredPage = Omit<AcquiredPage, 'results'> & { results: (AcquireResult | string)[] };

const TRANSITIONS = {
  acquire: transition<{ items: AcquireEntry[]; maxWaiters: number }, RawAcquiredPage>('leases/acquire'),
  release: transition<{ items: ReleaseEntry[]; rememberMs: number }, ReleasedPage>('leases/release'),
  transfer: transition<TransferEntry & { rememberMs: number }, Transferred>('leases/transfer'),
  cancel: transition<CancelAcquireRequest & { rememberMs: number }, Cancelled>('leases/cancel'),
};

@Injectable()
export class LeaseStore extends createStoreClass({
  /** Returns one page of expired leases, and moves waiters of lost servers. */
  sweep: transition<object, SweptPage>('leases/sweep'),
}) {
  constructor(
    runner: FunctionRunner,
    private readonly bounds: LeaseBounds = new LeaseBounds(),
  ) {
    super(runner);
  }

  /**
   * Grants, parks or refuses acquires in their order. The acquires may be of many workers.
   * @param brief leaves out the parts of receipts that only readers of receipts need, except for items with `explain`
   */
  async acquire(pool: string, items: AcquireEntry[], brief = false): Promise<AcquiredPage> {
    const { maxWaiters } = this.bounds;
    // All pages are sent at once, in their order.
    const pages = await Promise.all(
      acquirePages(items).map((page) =>
        this.runner.run(TRANSITIONS.acquire, pool, { items: page.map(withoutEmpty), maxWaiters }),
      ),
    );
    const servers: ServerTable = {};
    for (const page of pages) Object.assign(servers, page.servers);
    const results = pages.flatMap((page) =>
      page.results.map((result) => (typeof result === 'string' ? parseGranted(result, brief) : result)),
    );
    return { results, servers };
  }

  async release(pool: string, items: ReleaseEntry[]): Promise<ReleasedPage> {
    const { rememberMs } = this.bounds;
    const reply: ReleasedPage = { results: [], answers: [], servers: {}, more: false };
    const pages = await Promise.all(
      splitPages(items, RELEASES_PER_CALL).map((page) =>
        this.runner.run(TRANSITIONS.release, pool, { items: page, rememberMs }),
      ),
    );
    for (const page of pages) {
      reply.results.push(...page.results);
      reply.answers.push(...page.answers);
      Object.assign(reply.servers, page.servers);
      reply.more ||= page.more;
      if (page.broken) reply.broken = [...(reply.broken ?? []), ...page.broken];
      if (page.unheard) reply.unheard = true;
    }
    return reply;
  }

  /**
   * Moves a live lease to a named server.
   * @throws BroomwagonError LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL,
   *   SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED; nothing was changed
   */
  transfer(pool: string, entry: TransferEntry): Promise<Transferred> {
    return this.runner.run(TRANSITIONS.transfer, pool, { ...entry, rememberMs: this.bounds.rememberMs });
  }

  /** Ends the wait of an acquire; a granted lease stays. @throws BroomwagonError WORKER_NOT_FOUND */
  cancel(pool: string, request: CancelAcquireRequest): Promise<Cancelled> {
    return this.runner.run(TRANSITIONS.cancel, pool, { ...request, rememberMs: this.bounds.rememberMs });
  }
}

/**
 * Maximum work of one transition, in units of the simplest acquire. So much work takes 2 ms, and less than 5 ms in the
 * worst case.
 */
const WORK_PER_CALL = 128;
const WORK_OF_RESTRICTED = 16;
const WORK_IN_GROUP = 4;
/** Leases that one transition returns, in 2 ms. */
const RELEASES_PER_CALL = 128;

function acquirePages(items: readonly AcquireEntry[]): AcquireEntry[][] {
  const pages: AcquireEntry[][] = [];
  let left = 0;
  for (const item of items) {
    const work = computeWork(item);
    if (left < work) {
      pages.push([]);
      left = WORK_PER_CALL;
    }
    pages.at(-1)!.push(item);
    left -= work;
  }
  return pages;
}

function computeWork(item: AcquireEntry): number {
  if (item.explain) return WORK_PER_CALL;
  const { weightVersion, minWeightVersion, maxWeightLag, excludeServers, avoidServers, labels, needs } = item;
  const constraints = [weightVersion, minWeightVersion, maxWeightLag, excludeServers, avoidServers, labels, needs];
  if (constraints.some((one) => one != null)) return WORK_OF_RESTRICTED;
  return item.groupId == null ? 1 : WORK_IN_GROUP;
}

/** The item without null and empty lists: null is true in Lua, and cjson makes an empty list an object. */
function withoutEmpty(item: AcquireEntry): AcquireEntry {
  const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0);
  if (!Object.values(item).some(isEmpty)) return item;
  return Object.fromEntries(Object.entries(item).filter(([, value]) => !isEmpty(value))) as unknown as AcquireEntry;
}
