import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  type DeregisterWorkerReply,
  type DeregisterWorkerRequest,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type SyncWorkerReply,
  type SyncWorkerRequest,
} from '@broomwagon/contracts';
import { PoolDirectory, RoutingStore } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { SweepService } from '../upkeep/sweep.service';

/** Worker epochs and what they hold. */
@Injectable()
export class WorkersService {
  constructor(
    private readonly store: RoutingStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: SweepService,
    private readonly config: LoadBalancerConfig,
  ) {}

  /** A new epoch, which voids the one before; a repeat gets the same. @throws BroomwagonError UNAVAILABLE */
  async register(pool: string, request: RegisterWorkerRequest): Promise<RegisterWorkerReply> {
    await this.pools.add(pool);
    const reply = await this.store.registerWorker(pool, {
      ...request,
      ttlMs: request.ttlMs ?? this.config.workerTtlMs,
    });
    this.sweeper.soon(pool);
    return reply;
  }

  /** @throws BroomwagonError FENCED, VALIDATION_FAILED for a cursor that is none, UNAVAILABLE */
  async sync(pool: string, request: SyncWorkerRequest): Promise<SyncWorkerReply> {
    const { kind, cursor = '0' } = request;
    if (!/^\d{1,20}$/.test(cursor)) {
      throw new BroomwagonError('VALIDATION_FAILED', 'The cursor is not one of ours', { field: 'cursor' });
    }
    const page = await this.store.syncWorker(pool, request, kind, cursor);
    return { items: page.items, ...(page.cursor === '0' ? {} : { cursor: page.cursor }) };
  }

  /** What the epoch still holds is returned at once. @throws BroomwagonError UNAVAILABLE */
  async deregister(pool: string, request: DeregisterWorkerRequest): Promise<DeregisterWorkerReply> {
    const reply = await this.store.deregisterWorker(pool, request.workerId, request.workerEpoch);
    this.sweeper.soon(pool);
    return reply;
  }
}
