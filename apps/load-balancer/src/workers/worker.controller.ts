import { Controller } from '@nestjs/common';
import {
  DeregisterWorkerRequest,
  ListWorkersRequest,
  RegisterWorkerRequest,
  SyncWorkerRequest,
  WorkerHeartbeatRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { InspectionStore, PoolDirectory, RoutingStore } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { SweepService } from '../upkeep/sweep.service';

/** The operations `worker.*`. */
@Controller()
export class WorkerController {
  constructor(
    private readonly routing: RoutingStore,
    private readonly inspections: InspectionStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: SweepService,
    private readonly config: LoadBalancerConfig,
  ) {}

  /** A new epoch, which ends the one before; a repeat gets the same. */
  @Operation('worker.register')
  async register({ ttlMs = this.config.workerTtlMs, ...body }: RegisterWorkerRequest, { pool }: MessageContext) {
    await this.pools.add(pool);
    const reply = await this.routing.registerWorker(pool, { ...body, ttlMs });
    this.sweeper.soon(pool);
    return reply;
  }

  @Operation('worker.heartbeat')
  heartbeat({ workerId, workerEpoch }: WorkerHeartbeatRequest, { pool }: MessageContext) {
    return this.routing.heartbeatWorker(pool, workerId, workerEpoch);
  }

  @Operation('worker.sync')
  async sync({ kind, cursor: from = '0', ...worker }: SyncWorkerRequest, { pool }: MessageContext) {
    const { items, cursor } = await this.routing.syncWorker(pool, worker, kind, from);
    return { items, ...(cursor === '0' ? {} : { cursor }) };
  }

  /** What the epoch still holds is returned at once. */
  @Operation('worker.deregister')
  async deregister({ workerId, workerEpoch }: DeregisterWorkerRequest, { pool }: MessageContext) {
    const reply = await this.routing.deregisterWorker(pool, workerId, workerEpoch);
    this.sweeper.soon(pool);
    return reply;
  }

  @Operation('worker.list')
  list({ cursor }: ListWorkersRequest, { pool }: MessageContext) {
    return this.inspections.workers(pool, cursor);
  }
}
