import { Injectable } from '@nestjs/common';
import { Periodically, Scheduler } from '@broomwagon/platform';
import { PoolDirectory } from '@broomwagon/state';
import { JobTotals } from './job-totals';

const POOLS_INTERVAL_MS = 5_000;
const SLEEPING_INTERVAL_MS = 30_000;

/** Periodic work on the list of pools. */
@Injectable()
export class UpkeepService {
  constructor(
    private readonly directory: PoolDirectory,
    private readonly totals: JobTotals,
    private readonly scheduler: Scheduler,
  ) {}

  @Periodically('pools', POOLS_INTERVAL_MS)
  reviewPools(): Promise<void> {
    return this.directory.review();
  }

  @Periodically('sleeping-pools', SLEEPING_INTERVAL_MS, { isImmediate: true })
  reviewSleeping(): Promise<void> {
    return this.directory.reviewAsleep();
  }

  @Periodically('forget-sleeping', POOLS_INTERVAL_MS)
  async forgetSleeping(): Promise<void> {
    this.totals.keepOnly(await this.scheduler.pools());
  }
}
