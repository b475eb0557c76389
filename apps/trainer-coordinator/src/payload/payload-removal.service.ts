import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { Alarms, failpoint } from '@broomwagon/platform';
import { RemovalStore, PayloadStore, type RemovalTerms } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';

/**
 * Removes payloads that transitions have freed, after a grace: Redis that lost its last seconds names them again, and
 * then the queue has forgotten them too. Safe in all replicas at once.
 */
@Injectable()
export class PayloadRemovalService {
  constructor(
    private readonly removals: RemovalStore,
    private readonly payloads: PayloadStore,
    private readonly metrics: CoordinatorMetrics,
    private readonly alarms: Alarms,
    private readonly config: CoordinatorConfig,
  ) {}

  /** Pages until nothing is due now. @throws BroomwagonError UNAVAILABLE */
  async sweep(pool: PoolName): Promise<void> {
    for (;;) {
      // One that is stored from here on under the same name is another payload.
      const cutoffMs = await this.payloads.nowMs();
      const page = await this.removals.look(pool, this.terms);
      if (page.unweighed.length > 0) {
        const bytes = await this.payloads.free(page.unweighed);
        const payloads = page.unweighed.map((ref, position) => ({ ref, bytes: bytes[position] }));
        await this.removals.weighed(pool, payloads);
      }
      if (page.due.length > 0) {
        await this.payloads.remove(page.due, cutoffMs);
        await failpoint('coordinator.removal.between-remove-and-removed');
        await this.removals.removed(pool, page.due);
        this.metrics.swept('delete');
      }
      if (page.unweighed.length === 0 && page.due.length === 0) return this.show(pool, page);
    }
  }

  private get terms(): RemovalTerms {
    const { payloadDeleteAfterMs, redisLossWindowMs, payloadAwaitingMaxBytes } = this.config;
    return {
      deleteAfterMs: Math.max(payloadDeleteAfterMs, redisLossWindowMs),
      lossWindowMs: redisLossWindowMs,
      maxBytes: payloadAwaitingMaxBytes,
    };
  }

  /** What is left when everything that may be removed is: only that is worth an alarm. */
  private show(pool: PoolName, { awaiting, awaitingBytes }: { awaiting: number; awaitingBytes: number }): void {
    this.metrics.awaitingDeletion(pool, awaitingBytes);
    const alarm = awaitingBytes > this.config.payloadAwaitingMaxBytes ? 'payloads-awaiting-deletion' : undefined;
    const says = 'Payloads that were freed within the loss window of Redis have more bytes than may wait';
    this.alarms.look(pool, 'removals', alarm, says, { awaiting, awaitingBytes });
  }
}
