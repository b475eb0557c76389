import { Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, isBroomwagonError, type LeaseGrant, type TransferLeaseRequest } from '@broomwagon/contracts';
import { toLeaseGrant, LeaseStore, parseLeaseId } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';

/** `lb.transfer`: moves a live lease to another server. */
@Injectable()
export class TransferService {
  private readonly logger = new Logger(TransferService.name);

  constructor(
    private readonly store: LeaseStore,
    private readonly waiters: WaiterAnswersService,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /**
   * @throws BroomwagonError LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL,
   *   SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED: nothing was changed; UNAVAILABLE: repeat the call
   */
  async transfer(pool: string, request: TransferLeaseRequest): Promise<LeaseGrant> {
    const { transferId, workerId, workerEpoch, targetServerId, targetEpoch, reason } = request;
    const lease = parseLease(request);
    const moved = await this.store
      .transfer(pool, { transferId, workerId, workerEpoch, targetServerId, targetEpoch, ...lease })
      .catch((error: unknown) => {
        if (isBroomwagonError(error)) this.metrics.transfers.inc({ outcome: error.code });
        throw error;
      });
    const { granted, servers, answers = [], waiterServers = {}, more = false } = moved;
    this.metrics.transfers.inc({ outcome: 'transferred' });
    this.waiters.sendAll(pool, { answers, servers: waiterServers, more });
    this.logger.debug({ pool, ...lease, targetServerId, reason }, 'A lease was moved to another server');
    return toLeaseGrant(lease.acquireId, granted, servers);
  }
}

function parseLease({ leaseId, acquireId }: TransferLeaseRequest): { acquireId: string; seq?: number } {
  if (leaseId === undefined) {
    if (acquireId !== undefined) return { acquireId };
    throw new BroomwagonError('VALIDATION_FAILED', 'leaseId or acquireId is required', { field: 'leaseId' });
  }
  const parsed = parseLeaseId(leaseId);
  if (!parsed) throw new BroomwagonError('LEASE_NOT_FOUND', 'No such lease of this worker', { field: 'leaseId' });
  return parsed;
}
