import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { Alarms, failpoint, InEachPool } from '@broomwagon/platform';
import { RemovalStore, PayloadStore, type RemovalLook, type RemovalTerms } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';

/** Interval of removals, in intervals of the sweep. */
const SWEEPS_PER_REMOVAL = 10;
const MESSAGES = {
  'payloads-awaiting-deletion':
    'Payloads that became unused within REDIS_LOSS_WINDOW_MS exceed PAYLOAD_AWAITING_MAX_BYTES',
  'payloads-not-removed': 'The payload store does not remove unused payloads; the log of the task has the cause',
};

/**
 * Removes freed payloads after a delay. A Redis that loses its last seconds refers to payloads freed in these seconds
 * again, and has them no longer in the queue of freed payloads. All replicas may sweep at once.
 */
@Injectable()
export class PayloadRemovalService {
  /** Start of the latest series of failing sweeps, by pool. */
  private readonly failingSinceMs = new Map<PoolName, number>();

  constructor(
    private readonly removals: RemovalStore,
    private readonly payloads: PayloadStore,
    private readonly metrics: CoordinatorMetrics,
    private readonly alarms: Alarms,
    private readonly config: CoordinatorConfig,
  ) {}

  /**
   * Handles pages until no payload is due now, and skips payloads at which the store fails.
   * @throws BroomwagonError UNAVAILABLE; another error of the store, after all other payloads are handled
   */
  @InEachPool('removals', (config: CoordinatorConfig) => SWEEPS_PER_REMOVAL * config.sweepIntervalMs)
  async sweep(pool: PoolName): Promise<void> {
    for (;;) {
      const errors: unknown[] = [];
      // A payload that is stored after this time, even under the same name, is another payload.
      const cutoffMs = await this.payloads.nowMs().catch((error: unknown) => void errors.push(error));
      const page = await this.removals.look(pool, this.terms);
      const done = cutoffMs === undefined ? 0 : await this.handle(pool, page, cutoffMs, errors);
      if (done > 0) continue;
      this.show(pool, page, errors.length > 0);
      if (errors.length > 0) throw errors[0];
      return;
    }
  }

  /** Weighs and removes the payloads of a page. @returns the number of payloads without an error */
  private async handle(pool: PoolName, page: RemovalLook, cutoffMs: number, errors: unknown[]): Promise<number> {
    const freed = await apart(page.unweighed, (refs) => this.payloads.free(refs), errors);
    for (const { refs, result } of freed) {
      const payloads = refs.map((ref, position) => ({ ref, bytes: result[position] }));
      await this.removals.weighed(pool, { payloads });
    }
    const removed = await apart(page.due, (refs) => this.payloads.remove(refs, cutoffMs), errors);
    for (const { refs } of removed) {
      await failpoint('coordinator.removal.between-remove-and-removed');
      await this.removals.removed(pool, { refs });
      this.metrics.sweepPages.inc({ kind: 'delete' });
    }
    return [...freed, ...removed].reduce((sum, { refs }) => sum + refs.length, 0);
  }

  private get terms(): RemovalTerms {
    const { payloadDeleteAfterMs, redisLossWindowMs, payloadAwaitingMaxBytes } = this.config;
    return {
      deleteAfterMs: Math.max(payloadDeleteAfterMs, redisLossWindowMs),
      lossWindowMs: redisLossWindowMs,
      maxBytes: payloadAwaitingMaxBytes,
    };
  }

  /** Shows the payloads that are left after all allowed removals. Payloads that can still be removed raise no alarm. */
  private show(pool: PoolName, { awaiting, awaitingBytes }: RemovalLook, hasFailed: boolean): void {
    this.metrics.awaitingDeletion.set({ pool }, awaiting);
    this.metrics.awaitingDeletionBytes.set({ pool }, awaitingBytes);
    if (!hasFailed) this.failingSinceMs.delete(pool);
    else if (!this.failingSinceMs.has(pool)) this.failingSinceMs.set(pool, performance.now());
    const failingMs = performance.now() - (this.failingSinceMs.get(pool) ?? Infinity);
    const alarm =
      failingMs >= this.terms.deleteAfterMs
        ? 'payloads-not-removed'
        : awaitingBytes > this.config.payloadAwaitingMaxBytes
          ? 'payloads-awaiting-deletion'
          : undefined;
    this.alarms.look(pool, 'removals', alarm, alarm === undefined ? '' : MESSAGES[alarm], { awaiting, awaitingBytes });
  }
}

/**
 * Runs the work on all references together. If the work fails, it runs on each half, so that one failing reference does
 * not hold up the others. An unavailable store is not called again.
 * @param errors receives the errors of single references
 * @returns the parts on which the work succeeded
 */
async function apart<T>(
  refs: string[],
  work: (refs: string[]) => Promise<T>,
  errors: unknown[],
): Promise<{ refs: string[]; result: T }[]> {
  if (refs.length === 0) return [];
  try {
    return [{ refs, result: await work(refs) }];
  } catch (error) {
    if (refs.length === 1 || isBroomwagonError(error, 'UNAVAILABLE')) {
      errors.push(error);
      return [];
    }
    const middle = refs.length >> 1;
    const first = await apart(refs.slice(0, middle), work, errors);
    return [...first, ...(await apart(refs.slice(middle), work, errors))];
  }
}
