import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { WeightStore, type EngineStep } from '@broomwagon/state';
import { EngineHealth } from './engine-health';
import { ServersService } from './servers.service';

/** Sees to it that nothing computed by older weights is used again. */
@Injectable()
export class PrefixCachesService {
  private readonly logger = new Logger(PrefixCachesService.name);

  constructor(
    private readonly weights: WeightStore,
    private readonly engines: EngineHealth,
    private readonly servers: ServersService,
  ) {}

  /**
   * Resets the prefix cache of an engine that is about to go on with new weights. Requests that were kept over the change
   * hold theirs, as mode `keep` means it. An engine without such a route has done so when it was paused. One that fails to
   * do it is not used with what it holds: its server counts as one of the older weights, and is quarantined until its
   * version is reported again.
   * @throws BroomwagonError UNAVAILABLE
   */
  async beforeResume(pool: string, step: EngineStep): Promise<void> {
    const { sync } = await this.weights.status(pool, step.syncId).catch((error: unknown) => {
      // The server is paused for so long that nobody knows for what.
      if (isBroomwagonError(error, 'WEIGHT_SYNC_NOT_FOUND')) return { sync: undefined };
      throw error;
    });
    if (sync?.state !== 'committed' || sync.mode === 'keep') return;
    const { serverId } = step;
    try {
      await this.engines.resetPrefixCache({ ...step, pool });
    } catch (error) {
      if (isBroomwagonError(error, 'ENGINE_REJECTED')) return;
      this.logger.error({ err: error, pool, serverId }, 'A prefix cache was not reset: the server is quarantined');
      await this.servers.update(pool, { serverId, weightVersion: sync.fromVersion }).catch((refusal: unknown) => {
        // Removed meanwhile: nothing runs on it.
        if (!isBroomwagonError(refusal, 'SERVER_NOT_FOUND')) throw refusal;
      });
    }
  }
}
