import { Injectable, Logger } from '@nestjs/common';
import type { ReleaseOutcome } from '@broomwagon/contracts';
import { ControlPlane } from '../holder/control-plane';
import { HolderConfig } from '../holder/holder.config';
import { HeldLeases } from './held-leases';
import type { LeasedCall } from './leased-call';

/** Releases leases. A lease whose release fails is returned by a sync, or when the worker epoch expires. */
@Injectable()
export class LeaseReleaser {
  private readonly logger = new Logger(LeaseReleaser.name);
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly leases: HeldLeases,
    private readonly config: HolderConfig,
  ) {}

  /** Settles when the load-balancer has answered or the deadline has passed. Never throws. */
  release(
    call: LeasedCall,
    of: { leaseId: string } | { acquireId: string },
    outcome: ReleaseOutcome,
    tokens?: number,
  ): Promise<void> {
    if (call.cause === 'fenced') {
      // The load-balancer returns the leases of an expired epoch.
      this.leases.dropped(call);
      return Promise.resolve();
    }
    this.leases.releasing(call);
    const work = this.controlPlane
      .callWithRetry('lb.release', { ...of, outcome, tokens }, { deadlineMs: this.config.transitionDeadlineMs })
      .then(
        () => undefined,
        (error: Error) => this.logger.warn(call.ids, `The lease was not released: ${error.message}`),
      )
      .finally(() => {
        this.leases.dropped(call);
        this.running.delete(work);
      });
    this.running.add(work);
    return work;
  }

  /** Settles when all running releases are answered. */
  async idle(): Promise<void> {
    await Promise.all(this.running);
  }
}
