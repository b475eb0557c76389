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
  toDecision,
  toLeaseGrant,
  buildLeaseId,
  LeaseStore,
  toRefusal,
  type AcquireEntry,
  type AcquireResult,
  type ServerTable,
} from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { EngineRecordsService } from '../servers/engine-records.service';
import { BurstReply } from './burst-reply';
import { PoolCoalescers } from '../coalescing/pool-coalescers';

interface Answered {
  result: AcquireResult;
  servers: ServerTable;
}

@Injectable()
export class AcquireService {
  private readonly calls = new PoolCoalescers<AcquireEntry, Answered>((...call) => this.run(...call));

  constructor(
    private readonly store: LeaseStore,
    private readonly engines: EngineRecordsService,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /**
   * @throws BroomwagonError WORKER_NOT_FOUND, FENCED, RELEASED, NO_SERVER_AVAILABLE, SERVERS_FULL, QUEUE_FULL,
   *   MODEL_NOT_FOUND, UNAVAILABLE
   */
  async acquire(
    pool: string,
    request: AcquireRequest,
    replyTo: string | undefined,
  ): Promise<LeaseGrant | typeof PARKED> {
    const receivedAtMs = performance.now();
    const mayWait = (request.waitMs ?? 0) > 0;
    const entry: AcquireEntry = mayWait ? { replyTo, ...request } : request;
    let answered = await this.calls.add(pool, entry);
    if ('error' in answered.result && answered.result.error === 'MODEL_NOT_FOUND') {
      // An engine may have loaded the model since the last probe.
      await this.engines.refresh(pool);
      answered = await this.calls.add(pool, entry);
    }
    const { result, servers } = answered;
    await failpoint('load-balancer.acquire.before-reply');
    if ('parked' in result) return PARKED;
    if ('error' in result) throw toRefusal(result, request.model);
    this.metrics.waited(pool, performance.now() - receivedAtMs);
    return toLeaseGrant(request.acquireId, result, servers);
  }

  /**
   * The reply lists refused acquires with their errors.
   * @throws BroomwagonError VALIDATION_FAILED when an item would wait; UNAVAILABLE
   */
  async acquireMany(pool: string, request: AcquireManyRequest): Promise<AcquireManyReply> {
    const { workerId, workerEpoch, acquires } = request;
    const waiting = acquires.findIndex((item) => (item.waitMs ?? 0) > 0);
    if (waiting >= 0) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Acquires of lb.acquire-many cannot wait: leave waitMs out', {
        field: `acquires.${waiting}.waitMs`,
      });
    }
    if (acquires.filter(({ explain }) => explain).length > LIMITS.explainsPerCall) {
      const message = `At most ${LIMITS.explainsPerCall} of lb.acquire-many may set explain`;
      throw new BroomwagonError('VALIDATION_FAILED', message, { field: 'acquires' });
    }
    const entries = acquires.map((item): AcquireEntry => ({ workerId, workerEpoch, ...item }));
    const answered = await this.calls.addAll(pool, entries);
    await failpoint('load-balancer.acquire.before-reply');
    const reply = new BurstReply(acquires.map(({ acquireId }) => acquireId));
    answered.forEach(({ result, servers }, index) => {
      const { acquireId, explain, model } = acquires[index]!;
      if ('seq' in result) {
        const lease = {
          acquireId,
          leaseId: buildLeaseId(result.seq, acquireId),
          serverId: result.serverId,
          ...(result.dpRank === undefined ? {} : { dpRank: result.dpRank }),
          ...(explain ? { decision: toDecision(result) } : {}),
        };
        reply.add(lease, servers[result.serverId]!);
      } else {
        if (!('error' in result)) throw new Error(`The acquire ${acquireId} of a burst was parked`);
        reply.add({ acquireId, error: toRefusal(result, model).toWire() });
      }
    });
    return reply.body;
  }

  private async run(pool: string, items: AcquireEntry[], brief: boolean): Promise<Answered[]> {
    const { results, servers } = await this.store.acquire(pool, items, brief);
    this.metrics.batchSizes.observe(items.length);
    this.metrics.answered(results);
    return results.map((result) => ({ result, servers }));
  }
}
