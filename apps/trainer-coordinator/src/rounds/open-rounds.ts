import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { InspectionStore, RoundStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { RoundMetrics, type JobRounds } from './round.metrics';

const READ_INTERVAL_MS = 5_000;

/** Reads the open rounds of each pool for the gauges. */
@Injectable()
export class OpenRounds {
  constructor(
    private readonly rounds: RoundStore,
    private readonly inspections: InspectionStore,
    private readonly metrics: RoundMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE: the gauges disappear after some time */
  @InEachPool('open-rounds', READ_INTERVAL_MS)
  async read(pool: PoolName): Promise<void> {
    const shown: JobRounds[] = [];
    for (const job of await this.rounds.allJobs(pool, true)) {
      if (shown.length === this.config.metricsJobs) break;
      const reply = await this.inspections.rounds(pool, { job }).catch((error: unknown) => {
        if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
        throw error;
      });
      if (reply !== undefined) shown.push({ job, rounds: reply.rounds });
    }
    this.metrics.show(pool, shown, Date.now());
  }
}
