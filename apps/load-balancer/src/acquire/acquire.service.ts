import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  type AcquireManyReply,
  type AcquireManyRequest,
  type AcquireRequest,
  type LeaseGrant,
} from '@broomwagon/contracts';
import { PARKED } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import {
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
import { PoolCoalescers } from './pool-coalescers';

interface Answered {
  result: AcquireResult;
  servers: ServerTable;
}

/** `lb.acquire` and `lb.acquire-many`. */
@Injectable()
export class AcquireService {
  private readonly single = new PoolCoalescers<AcquireEntry, Answered>((pool, items) => this.run(pool, items));
  /** Bursts go one script at a time, so that single acquires come in between. */
  private readonly burst = new PoolCoalescers<AcquireEntry, Answered>((pool, items) => this.run(pool, items), {
    batchSize: 128,
    batchesInFlight: 1,
  });

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
    const { result, servers } = await this.single.of(pool).add({ ...request, replyTo });
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
    const answered = await this.burst.of(pool).addAll(acquires.map((item) => ({ ...item, workerId, workerEpoch })));
    await failpoint('load-balancer.acquire.before-reply');
    const reply: AcquireManyReply = { servers: {}, leases: [] };
    answered.forEach(({ result, servers }, index) => {
      const { acquireId } = acquires[index]!;
      if ('seq' in result) {
        reply.servers[result.serverId] = servers[result.serverId]!;
        reply.leases.push({ acquireId, leaseId: leaseIdOf(result.seq, acquireId), serverId: result.serverId });
      } else {
        const code = 'error' in result ? result.error : 'INTERNAL';
        reply.leases.push({ acquireId, error: wireRefusalOf(code) });
      }
    });
    return reply;
  }

  private async run(pool: string, items: AcquireEntry[]): Promise<Answered[]> {
    const { results, servers } = await this.store.acquire(pool, items);
    this.metrics.batch(items.length);
    return results.map((result) => {
      this.metrics.acquired('error' in result ? result.error : 'parked' in result ? 'parked' : result.branch);
      return { result, servers };
    });
  }
}
