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
  isPlainAcquire,
  leaseGrantOf,
  leaseIdOf,
  refusalOf,
  RoutingStore,
  wireRefusalOf,
  type AcquireEntry,
  type AcquireResult,
  type ServerTable,
} from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import type { Coalescer } from './coalescer';
import { PoolCoalescers } from './pool-coalescers';

interface Answered {
  result: AcquireResult;
  servers: ServerTable;
}

/** `lb.acquire` and `lb.acquire-many`. */
@Injectable()
export class AcquireService {
  private readonly single = this.lanes(false);
  /** Bursts have a queue of their own, so that single acquires come in between their scripts. */
  private readonly burst = this.lanes(true);

  constructor(
    private readonly store: RoutingStore,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /** @throws BroomwagonError FENCED, RELEASED, NO_SERVER_AVAILABLE, QUEUE_FULL, VALIDATION_FAILED, UNAVAILABLE */
  async acquire(
    pool: string,
    request: AcquireRequest,
    replyTo: string | undefined,
  ): Promise<LeaseGrant | typeof PARKED> {
    const mayWait = (request.waitMs ?? 0) > 0;
    const entry: AcquireEntry = mayWait ? { ...request, replyTo } : request;
    const { result, servers } = await this.single(pool, entry).add(entry);
    await failpoint('load-balancer.acquire.before-reply');
    if ('parked' in result) return PARKED;
    if ('error' in result) throw refusalOf(result.error);
    return leaseGrantOf(request.acquireId, result, servers);
  }

  /** Refusals stand in the list. @throws BroomwagonError VALIDATION_FAILED when an item would wait; UNAVAILABLE */
  async acquireMany(pool: string, request: AcquireManyRequest): Promise<AcquireManyReply> {
    const { workerId, workerEpoch, acquires } = request;
    const waiting = acquires.findIndex((item) => (item.waitMs ?? 0) > 0);
    if (waiting >= 0) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Acquires of a burst cannot wait: leave waitMs out', {
        field: `acquires.${waiting}.waitMs`,
      });
    }
    if (acquires.filter(({ explain }) => explain).length > LIMITS.explainsPerCall) {
      throw new BroomwagonError('VALIDATION_FAILED', `At most ${LIMITS.explainsPerCall} of a burst may ask explain`, {
        field: 'acquires',
      });
    }
    const answered = await Promise.all(
      acquires.map((item) => {
        const entry: AcquireEntry = { ...item, workerId, workerEpoch };
        return this.burst(pool, entry).add(entry);
      }),
    );
    await failpoint('load-balancer.acquire.before-reply');
    const reply: AcquireManyReply = { servers: {}, leases: [] };
    answered.forEach(({ result, servers }, index) => {
      const { acquireId, explain } = acquires[index]!;
      if ('seq' in result) {
        reply.servers[result.serverId] = servers[result.serverId]!;
        reply.leases.push({
          acquireId,
          leaseId: leaseIdOf(result.seq, acquireId),
          serverId: result.serverId,
          ...(result.dpRank === undefined ? {} : { dpRank: result.dpRank }),
          ...(explain ? { decision: decisionOf(result) } : {}),
        });
      } else {
        const code = 'error' in result ? result.error : 'INTERNAL';
        reply.leases.push({ acquireId, error: wireRefusalOf(code) });
      }
    });
    return reply;
  }

  /** The queue of an acquire: plain ones have their own, since one that is not plain makes its whole script a full one. */
  private lanes(brief: boolean): (pool: string, entry: AcquireEntry) => Coalescer<AcquireEntry, Answered> {
    const run = (pool: string, items: AcquireEntry[]) => this.run(pool, items, brief);
    const plain = new PoolCoalescers<AcquireEntry, Answered>(run);
    const others = new PoolCoalescers<AcquireEntry, Answered>(run);
    return (pool, entry) => (isPlainAcquire(entry) ? plain : others).of(pool);
  }

  private async run(pool: string, items: AcquireEntry[], brief: boolean): Promise<Answered[]> {
    const { results, servers } = await this.store.acquire(pool, items, brief);
    this.metrics.batch(items.length);
    return results.map((result) => {
      if ('seq' in result) this.metrics.granted(result);
      else this.metrics.acquired('error' in result ? result.error : 'parked');
      return { result, servers };
    });
  }
}
