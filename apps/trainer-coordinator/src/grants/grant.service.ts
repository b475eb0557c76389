import { Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import { InEachPool } from '@broomwagon/platform';
import { toRefusal, RequestStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';

/**
 * Answers parked claims. A transition removes a waiter and returns the answer, which the process of the transition
 * sends. If this process dies first, the worker repeats its claim and gets the same answer.
 */
@Injectable()
export class GrantService {
  private readonly logger = new Logger(GrantService.name);
  private readonly underWay = new Map<PoolName, { again: boolean }>();

  constructor(
    private readonly requests: RequestStore,
    private readonly messaging: MessagingClient,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** Grants pending requests to parked claims in the background, with one run at a time in each pool. */
  soon(pool: PoolName): void {
    const running = this.underWay.get(pool);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const run = { again: true };
    this.underWay.set(pool, run);
    void this.repeat(pool, run)
      // The next upkeep grants the claims.
      .catch((error: unknown) => this.logger.warn({ err: error, pool }, 'Waiting claims could not be granted'))
      .finally(() => this.underWay.delete(pool));
  }

  /**
   * Grants pending requests to parked claims; grants nothing while Redis is full.
   * @throws BroomwagonError UNAVAILABLE
   */
  async grant(pool: PoolName): Promise<void> {
    for (let more = true; more;) {
      const page = await this.requests.grantClaims(pool).catch((error: unknown) => {
        if (isBroomwagonError(error, 'STORE_FULL')) return { grants: [], more: false };
        throw error;
      });
      for (const { replyTo, claims, fenced } of page.grants) {
        const answer = fenced
          ? new BroomwagonError('FENCED', 'The worker epoch has expired; register again', { field: 'workerEpoch' })
          : { claims };
        this.messaging.reply(replyTo, answer);
        this.metrics.claims.inc({ pool, outcome: 'granted' }, fenced ? 0 : 1);
      }
      more = page.more;
    }
  }

  /**
   * Grants pending requests to parked claims, also after the death of another process. Answers claims at their deadline
   * with no requests or POOL_PAUSED.
   * @throws BroomwagonError UNAVAILABLE
   */
  @InEachPool('claims', (config: CoordinatorConfig) => config.sweepIntervalMs)
  async upkeep(pool: PoolName): Promise<void> {
    await this.grant(pool);
    await this.expire(pool);
  }

  private async expire(pool: PoolName): Promise<void> {
    for await (const page of this.requests.whileMore('expireClaims', pool)) {
      const answer = page.paused ? toRefusal({ error: 'POOL_PAUSED', reason: page.paused }) : { claims: [] };
      for (const inbox of page.replyTo) this.messaging.reply(inbox, answer);
      this.metrics.claims.inc({ pool, outcome: 'expired' }, page.replyTo.length);
    }
  }

  private async repeat(pool: PoolName, run: { again: boolean }): Promise<void> {
    while (run.again) {
      run.again = false;
      await this.grant(pool);
    }
  }
}
