import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { TrajectoryStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';

/** Removes recorded trajectories of the gateway after a long time without use. All replicas may do so at once. */
@Injectable()
export class TrajectoryExpiryService {
  constructor(
    private readonly trajectories: TrajectoryStore,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE */
  @InEachPool('trajectories', 60_000)
  async expire(pool: PoolName): Promise<void> {
    const idleMs = this.config.trajectoryKeptMs;
    for await (const { more } of this.trajectories.whileMore('expire', pool, { idleMs })) if (!more) return;
  }
}
