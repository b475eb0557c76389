import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { RoundStore, type RoundName, type TakeAnswer } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../requests/grant.service';

/** Takes groups of the long-tail queue into rounds that are opening. */
@Injectable()
export class OpeningService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** Takes page after page until the round is open; goes on where another process died. @throws BroomwagonError */
  async finish(pool: PoolName, round: RoundName): Promise<TakeAnswer> {
    for (;;) {
      const page = await this.rounds.take(pool, { job: round.job, roundId: round.roundId });
      this.metrics.sweepPages.inc({ kind: 'take' });
      this.grants.soon(pool);
      if (page.state !== 'opening') return page;
      await failpoint('coordinator.open.between-pages');
    }
  }
}
