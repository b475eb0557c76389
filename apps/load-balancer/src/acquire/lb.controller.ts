import { Controller } from '@nestjs/common';
import {
  AcquireManyRequest,
  AcquireRequest,
  BroomwagonError,
  CancelAcquireRequest,
  ClearSessionsRequest,
  DecisionsRequest,
  FinishSessionRequest,
  GetLeaseRequest,
  ListLeasesRequest,
  ListSessionsRequest,
  LoadBalancerStatusRequest,
  ReleaseManyRequest,
  ReleaseRequest,
  TransferLeaseRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { InspectionStore, buildLeaseId, LeaseStore, PoolStore, ServerStore, SessionStore } from '@broomwagon/state';
import { AcquireService } from './acquire.service';
import { ReleaseService } from './release.service';
import { TransferService } from './transfer.service';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';

@Controller()
export class LbController {
  constructor(
    private readonly acquires: AcquireService,
    private readonly releases: ReleaseService,
    private readonly transfers: TransferService,
    private readonly waiters: WaiterAnswersService,
    private readonly leaseStore: LeaseStore,
    private readonly sessions: SessionStore,
    private readonly servers: ServerStore,
    private readonly pools: PoolStore,
    private readonly inspections: InspectionStore,
  ) {}

  @Operation('lb.acquire')
  acquire(body: AcquireRequest, { pool, replyTo }: MessageContext) {
    return this.acquires.acquire(pool, body, replyTo);
  }

  @Operation('lb.acquire-many')
  acquireMany(body: AcquireManyRequest, { pool }: MessageContext) {
    return this.acquires.acquireMany(pool, body);
  }

  @Operation('lb.cancel')
  async cancel(body: CancelAcquireRequest, { pool }: MessageContext) {
    const { cancelled, reason, seq, ...waiting } = await this.leaseStore.cancel(pool, body);
    this.waiters.send(pool, waiting);
    return { cancelled, reason, ...(seq === undefined ? {} : { leaseId: buildLeaseId(seq, body.acquireId) }) };
  }

  @Operation('lb.release')
  release(body: ReleaseRequest, { pool }: MessageContext) {
    return this.releases.release(pool, body);
  }

  @Operation('lb.release-many')
  releaseMany({ releases }: ReleaseManyRequest, { pool }: MessageContext) {
    return this.releases.releaseMany(pool, releases);
  }

  @Operation('lb.transfer')
  transfer(body: TransferLeaseRequest, { pool }: MessageContext) {
    return this.transfers.transfer(pool, body);
  }

  @Operation('lb.finish-session')
  async finishSession(body: FinishSessionRequest, { pool }: MessageContext) {
    const { finished, ...waiting } = await this.sessions.finish(pool, body);
    this.waiters.sendAll(pool, waiting);
    return { finished };
  }

  @Operation('lb.clear-sessions')
  async clearSessions(_body: ClearSessionsRequest, { pool }: MessageContext) {
    return { cleared: await this.sessions.clear(pool) };
  }

  /** Totals and the first page of servers by id. */
  @Operation('lb.status')
  async status(_body: LoadBalancerStatusRequest, { pool }: MessageContext) {
    const [totals, page] = await Promise.all([this.pools.status(pool), this.servers.list(pool, {})]);
    const perServer = page.servers
      .map(({ serverId, state, epoch, inflight, maxInflight }) => ({ serverId, state, epoch, inflight, maxInflight }))
      .sort((one, other) => (one.serverId < other.serverId ? -1 : 1));
    return { pool, ...totals, perServer };
  }

  @Operation('lb.leases')
  async leases(body: ListLeasesRequest, { pool }: MessageContext) {
    if (body.serverId !== undefined && body.workerId !== undefined) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Name a server or a worker, not both', { field: 'workerId' });
    }
    return this.inspections.leases(pool, body);
  }

  @Operation('lb.lease')
  lease({ leaseId }: GetLeaseRequest, { pool }: MessageContext) {
    return this.inspections.lease(pool, leaseId);
  }

  @Operation('lb.sessions')
  listSessions(body: ListSessionsRequest, { pool }: MessageContext) {
    return this.inspections.sessions(pool, body);
  }

  @Operation('lb.decisions')
  decisions(body: DecisionsRequest, { pool }: MessageContext) {
    return this.inspections.decisions(pool, body);
  }
}
