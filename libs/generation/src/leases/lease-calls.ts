import { Injectable } from '@nestjs/common';
import {
  isBroomwagonError,
  type AcquireItem,
  type LeaseGrant,
  type ReleaseItem,
  type ReleaseReply,
} from '@broomwagon/contracts';
import { ControlPlane } from '../holder/control-plane';
import type { WorkerEpoch } from './leased-call';

/** A granted lease, without the reasons for the choice of its server. */
export type Lease = Omit<LeaseGrant, 'decision'>;

/** An acquire without the time for which it may wait. */
export type LeaseItem = Omit<AcquireItem, 'waitMs'>;

export interface AcquireLimits {
  /** How long the load-balancer may let the acquire wait, milliseconds. */
  waitMs: number;
  timeoutMs: number;
  /** The load-balancer may have the acquire already, and let it wait. */
  isRepeat: boolean;
}

/** Sends each acquire and each release as a message of its own. */
@Injectable()
export class LeaseCalls {
  constructor(protected readonly controlPlane: ControlPlane) {}

  async acquire(worker: WorkerEpoch, item: LeaseItem, { waitMs, timeoutMs }: AcquireLimits): Promise<Lease> {
    const { workerId, workerEpoch } = worker;
    const request = { waitMs, workerId, workerEpoch, ...item };
    try {
      return await this.controlPlane.call('lb.acquire', request, { timeoutMs });
    } catch (error) {
      // A load-balancer of the previous release refuses an acquire with the field `model`.
      const isUnknownField = isBroomwagonError(error, 'VALIDATION_FAILED') && error.field === 'model';
      if (item.model === undefined || !isUnknownField) throw error;
      return this.controlPlane.call('lb.acquire', { ...request, model: undefined }, { timeoutMs });
    }
  }

  /** Repeats a release until it is answered, fails for good, or the deadline is near. @throws BroomwagonError */
  release(item: ReleaseItem, deadlineMs: number): Promise<ReleaseReply> {
    return this.controlPlane.callWithRetry('lb.release', item, { deadlineMs });
  }
}
