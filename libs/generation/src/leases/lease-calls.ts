import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type AcquireRequest, type LeaseGrant, type ReleaseItem } from '@broomwagon/contracts';
import { ControlPlane } from '../holder/control-plane';

/** A granted lease without how its server was chosen. */
export type Lease = Omit<LeaseGrant, 'decision'>;

/** Acquires and releases, each by a message of its own. */
@Injectable()
export class LeaseCalls {
  constructor(protected readonly controlPlane: ControlPlane) {}

  /**
   * One attempt.
   * @param _isRepeat the acquire may wait already
   * @throws BroomwagonError
   */
  async acquire(request: AcquireRequest, timeoutMs: number, _isRepeat: boolean): Promise<Lease> {
    const { model, ...others } = request;
    try {
      return await this.controlPlane.call('lb.acquire', request, { timeoutMs });
    } catch (error) {
      // A load-balancer of the release before does not know the field.
      const isUnknownField = isBroomwagonError(error, 'VALIDATION_FAILED') && error.field === 'model';
      if (model === undefined || !isUnknownField) throw error;
      return this.controlPlane.call('lb.acquire', others, { timeoutMs });
    }
  }

  /** Repeated until it is answered, fails for good or the deadline is near. @throws BroomwagonError */
  async release(item: ReleaseItem, deadlineMs: number): Promise<void> {
    await this.controlPlane.callWithRetry('lb.release', item, { deadlineMs });
  }
}
