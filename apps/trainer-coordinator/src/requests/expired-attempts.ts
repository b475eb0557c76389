import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { RequestStore } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../grants/grant.service';
import { PagedWork } from '../upkeep/paged-work';

/** Returns attempts whose worker epoch has expired: their requests are pending again. */
@Injectable()
export class ExpiredAttempts {
  constructor(
    private readonly requests: RequestStore,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 20, isDue: ({ expiredEpochs }) => expiredEpochs > 0 })
  async returnAll(pool: PoolName): Promise<void> {
    let pending = 0;
    for await (const page of this.requests.whileMore('expiredAttempts', pool)) {
      this.metrics.sweepPages.inc({ kind: 'expired' });
      this.metrics.attempts.inc({ outcome: 'expired' }, page.returned);
      pending += page.pending;
    }
    if (pending > 0) this.grants.soon(pool);
  }
}
