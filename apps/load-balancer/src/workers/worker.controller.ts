import { Controller, Logger } from '@nestjs/common';
import {
  DeregisterWorkerRequest,
  ListWorkersRequest,
  RegisterWorkerRequest,
  SyncWorkerRequest,
  WorkerHeartbeatRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { linkSilenceMs, outlivesSilentLink } from '@broomwagon/platform';
import { InspectionStore, PoolDirectory, WorkerStore } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { SweepService } from '../upkeep/sweep.service';

@Controller()
export class WorkerController {
  private readonly logger = new Logger(WorkerController.name);
  private shortestTtlMs = Infinity;

  constructor(
    private readonly workers: WorkerStore,
    private readonly inspections: InspectionStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: SweepService,
    private readonly config: LoadBalancerConfig,
  ) {}

  /** Starts a new epoch, which ends the previous epoch. A repeat gets the same epoch. */
  @Operation('worker.register')
  async register({ ttlMs = this.config.workerTtlMs, ...body }: RegisterWorkerRequest, { pool }: MessageContext) {
    this.checkTtl(body.workerId, ttlMs);
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

  /** Ends the epoch of a worker, and returns its leases at once. */
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

  /** Warns if this service notices a dead link only after `ttlMs`, once for each new shortest `ttlMs`. */
  private checkTtl(workerId: string, ttlMs: number): void {
    const silenceMs = linkSilenceMs(this.config.workerTtlMs);
    if (ttlMs >= this.shortestTtlMs || outlivesSilentLink(ttlMs, silenceMs)) return;
    this.shortestTtlMs = ttlMs;
    this.logger.warn(
      `The worker ${workerId} lives for ${ttlMs} ms without a heartbeat, and this service notices a dead link after ` +
        `${silenceMs} ms: set WORKER_TTL_MS of all services to the shortest time to live`,
    );
  }
}
