import { Controller } from '@nestjs/common';
import {
  DeregisterWorkerRequest,
  ListWorkersRequest,
  RegisterWorkerRequest,
  SyncWorkerRequest,
  WorkerHeartbeatRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { InspectionStore, PoolDirectory, WorkerStore } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { SweepService } from '../upkeep/sweep.service';

/** The operations `worker.*`. */
@Controller()
export class WorkerController {
  constructor(
    private readonly workers: WorkerStore,
    private readonly inspections: InspectionStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: SweepService,
    private readonly config: LoadBalancerConfig,
  ) {}

  /** A new epoch, which ends the one before; a repeat gets the same. */
  @Operation('worker.register')
  async register({ ttlMs = this.config.workerTtlMs, ...body }: RegisterWorkerRequest, { pool }: MessageContext) {
    await this.pools.add(pool);
    const reply = await this.workers.register(pool, { ...body, ttlMs });
    this.sweeper.soon(pool);
    return reply;
  }

  @Operation('worker.heartbeat')
  heartbeat(body: WorkerHeartbeatRequest, { pool }: MessageContext) {
    const { serverSilentAfterMs: silentAfterMs, prefillTokensPerSecond } = this.config;
    const seen = { servers: body.servers ?? [], silentAfterMs, prefillTokensPerSecond };
    return this.workers.heartbeat(pool, body, seen);
  }

  @Operation('worker.sync')
  sync(body: SyncWorkerRequest, { pool }: MessageContext) {
    return this.workers.sync(pool, body);
  }

  /** What the epoch still holds is returned at once. */
  @Operation('worker.deregister')
  async deregister(body: DeregisterWorkerRequest, { pool }: MessageContext) {
    const reply = await this.workers.deregister(pool, body);
    this.sweeper.soon(pool);
    return reply;
  }

  @Operation('worker.list')
  list(body: ListWorkersRequest, { pool }: MessageContext) {
    return this.inspections.workers(pool, body);
  }
}
