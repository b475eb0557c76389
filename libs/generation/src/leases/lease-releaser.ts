import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type ReleaseItem, type ReleaseOutcome, type ReleaseReply } from '@broomwagon/contracts';
import { HolderConfig } from '../holder/holder.config';
import { HeldLeases } from './held-leases';
import { LeaseCalls } from './lease-calls';
import type { LeasedCall } from './leased-call';

/** Releases leases. A lease whose release fails is returned by a sync, or when the worker epoch expires. */
@Injectable()
export class LeaseReleaser {
  private readonly logger = new Logger(LeaseReleaser.name);
  private readonly running = new Set<Promise<unknown>>();

  constructor(
    private readonly calls: LeaseCalls,
    private readonly leases: HeldLeases,
    private readonly config: HolderConfig,
  ) {}

  /** Resolves with the answer of the load-balancer, or undefined after the deadline. Never throws. */
  release(
    call: LeasedCall,
    { leaseId, acquireId }: { leaseId?: string; acquireId?: string },
    ended: ReleaseOutcome | Pick<ReleaseItem, 'outcome' | 'retryAfterMs'>,
    tokens?: number,
  ): Promise<ReleaseReply | undefined> {
    if (call.cause === 'fenced') {
      // The load-balancer returns the leases of an expired epoch.
      this.leases.dropped(call);
      return Promise.resolve(undefined);
    }
    this.leases.releasing(call);
    const { outcome, retryAfterMs = undefined } = typeof ended === 'string' ? { outcome: ended } : ended;
    const item = { leaseId, acquireId, outcome, retryAfterMs, tokens };
    const work = this.send(item)
      .catch((error: Error) => {
        this.logger.warn({ ...call.ids, err: error }, 'The lease was not released');
        return undefined;
      })
      .finally(() => {
        this.leases.dropped(call);
        this.running.delete(work);
      });
    this.running.add(work);
    return work;
  }

  /** Sends a release. A load-balancer of the previous release does not know the outcome `busy`. */
  private send(item: ReleaseItem): Promise<ReleaseReply> {
    const sent = this.calls.release(item, this.config.transitionDeadlineMs);
    if (item.outcome !== 'busy') return sent;
    return sent.catch((error: unknown) => {
      if (!isBroomwagonError(error, 'VALIDATION_FAILED')) throw error;
      const { retryAfterMs: _, ...known } = item;
      return this.calls.release({ ...known, outcome: 'aborted' }, this.config.transitionDeadlineMs);
    });
  }

  /** Resolves when all running releases are answered. */
  async idle(): Promise<void> {
    await Promise.all(this.running);
  }
}
