import { Injectable } from '@nestjs/common';
import type { AcquireRequest, LeaseGrant, ReleaseItem } from '@broomwagon/contracts';
import { ControlPlane } from '../holder/control-plane';

/** A granted lease without how its server was chosen. */
export type Lease = Omit<LeaseGrant, 'decision'>;

/** Acquires and releases, each by a message of its own. */
@Injectable()
export class LeaseCalls {
  constructor(protected readonly controlPlane: ControlPlane) {}

  /**
   * One attempt.
   * @param _isRepeat of an acquire that may wait already
   * @throws BroomwagonError
   */
  acquire(request: AcquireRequest, timeoutMs: number, _isRepeat: boolean): Promise<Lease> {
    return this.controlPlane.call('lb.acquire', request, { timeoutMs });
  }

  /** Repeated until it is answered, fails for good or the deadline is near. @throws BroomwagonError */
  async release(item: ReleaseItem, deadlineMs: number): Promise<void> {
    await this.controlPlane.callWithRetry('lb.release', item, { deadlineMs });
  }
}
