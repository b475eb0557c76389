import { Injectable, Logger } from '@nestjs/common';
import type { ReleaseOutcome } from '@broomwagon/contracts';
import { HolderConfig } from '../holder/holder.config';
import { HeldLeases } from './held-leases';
import { LeaseCalls } from './lease-calls';
import type { LeasedCall } from './leased-call';

/** Releases leases. A lease whose release fails is returned by a sync, or when the worker epoch expires. */
@Injectable()
export class LeaseReleaser {
  private readonly logger = new Logger(LeaseReleaser.name);
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly calls: LeaseCalls,
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
    const work = this.calls
      .release({ outcome, tokens, ...of }, this.config.transitionDeadlineMs)
      .catch((error: Error) => this.logger.warn(call.ids, `The lease was not released: ${error.message}`))
      .then(() => {
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
