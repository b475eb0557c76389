import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  LIMITS,
  type AcquireManyReply,
  type AcquireManyRequest,
  type AcquireRequest,
  type LeaseGrant,
} from '@broomwagon/contracts';
import { PARKED } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import {
  decisionOf,
  leaseGrantOf,
  leaseIdOf,
  LeaseStore,
  refusalOf,
  wireRefusalOf,
  type AcquireEntry,
  type AcquireResult,
  type ServerTable,
} from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { BurstReply } from './burst-reply';
import { PAGE_BY_PAGE, pagesOf, PoolCoalescers } from './pool-coalescers';

interface Answered {
  result: AcquireResult;
  servers: ServerTable;
}

/** `lb.acquire` and `lb.acquire-many`. */
@Injectable()
export class AcquireService {
  private readonly single = new PoolCoalescers<AcquireEntry, Answered>((pool, items) => this.run(pool, items, false));
  /** Bursts too, page by page, so that single acquires come in between their scripts. */
  private readonly pages = new PoolCoalescers<AcquireEntry[], Answered[]>(
    async (pool, [page]) => [await this.run(pool, page!, true)],
    PAGE_BY_PAGE,
  );

  constructor(
    private readonly store: LeaseStore,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /**
   * @throws BroomwagonError WORKER_NOT_FOUND, FENCED, RELEASED, NO_SERVER_AVAILABLE, SERVERS_FULL, QUEUE_FULL,
   *   UNAVAILABLE
   */
  async acquire(
    pool: string,
    request: AcquireRequest,
    replyTo: string | undefined,
  ): Promise<LeaseGrant | typeof PARKED> {
    const mayWait = (request.waitMs ?? 0) > 0;
    const entry: AcquireEntry = mayWait ? { ...request, replyTo } : request;
    const { result, servers } = await this.single.of(pool).add(entry);
    await failpoint('load-balancer.acquire.before-reply');
    if ('parked' in result) return PARKED;
    if ('error' in result) throw refusalOf(result);
    return leaseGrantOf(request.acquireId, result, servers);
  }

  /** Refusals stand in the list. @throws BroomwagonError VALIDATION_FAILED when an item would wait; UNAVAILABLE */
  async acquireMany(pool: string, request: AcquireManyRequest): Promise<AcquireManyReply> {
    const { workerId, workerEpoch, acquires } = request;
    const waiting = acquires.findIndex((item) => (item.waitMs ?? 0) > 0);
    if (waiting >= 0) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Acquires of lb.acquire-many cannot wait: leave waitMs out', {
        field: `acquires.${waiting}.waitMs`,
      });
    }
    if (acquires.filter(({ explain }) => explain).length > LIMITS.explainsPerCall) {
      throw new BroomwagonError(
        'VALIDATION_FAILED',
        `At most ${LIMITS.explainsPerCall} of lb.acquire-many may set explain`,
        {
          field: 'acquires',
        },
      );
    }
    const entries = acquires.map((item): AcquireEntry => ({ ...item, workerId, workerEpoch }));
    const answered = await this.inPages(pool, entries);
    await failpoint('load-balancer.acquire.before-reply');
    const reply = new BurstReply(acquires.map(({ acquireId }) => acquireId));
    answered.forEach(({ result, servers }, index) => {
      const { acquireId, explain } = acquires[index]!;
      if ('seq' in result) {
        const lease = {
          acquireId,
          leaseId: leaseIdOf(result.seq, acquireId),
          serverId: result.serverId,
          ...(result.dpRank === undefined ? {} : { dpRank: result.dpRank }),
          ...(explain ? { decision: decisionOf(result) } : {}),
        };
        reply.add(lease, servers[result.serverId]!);
      } else {
        if (!('error' in result)) throw new Error(`The acquire ${acquireId} of a burst was parked`);
        reply.add({ acquireId, error: wireRefusalOf(result) });
      }
    });
    return reply.body;
  }

  /** The answers in the order of the entries. */
  private async inPages(pool: string, entries: readonly AcquireEntry[]): Promise<Answered[]> {
    const pages = await Promise.all(pagesOf(entries).map((page) => this.pages.of(pool).add(page)));
    return pages.flat();
  }

  private async run(pool: string, items: AcquireEntry[], brief: boolean): Promise<Answered[]> {
    const { results, servers } = await this.store.acquire(pool, items, brief);
    this.metrics.batchSizes.observe(items.length);
    this.metrics.answered(results);
    return results.map((result) => ({ result, servers }));
  }
}
