import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type PoolName, type ServerId } from '@broomwagon/contracts';
import { type ServerStart, WeightStore } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { EngineHealth } from './engine-health';

/** Callers that report a version give up after 5 seconds, and `server.register` also waits for a first probe. */
const RESET_TIMEOUT_MS = 3_000;

/**
 * Prevents that cache entries computed with older weights are used again: before a server counts as one of a new weight
 * version, the prefix cache of its engine is reset. The engine has the new weights and runs nothing at that time, so
 * every later entry is computed with them.
 */
@Injectable()
export class PrefixCachesService {
  private readonly logger = new Logger(PrefixCachesService.name);

  constructor(
    private readonly weights: WeightStore,
    private readonly engines: EngineHealth,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /**
   * Whether the server may count as one of these weights. False when its engine failed to reset its cache: the server
   * keeps its older version until the version is reported again. An engine without a route for a reset is not called.
   * @param start what the server is registered as just now: another start has no cache of older weights
   * @throws BroomwagonError UNAVAILABLE
   */
  async mayTake(pool: PoolName, serverId: ServerId, weightVersion: number, start?: ServerStart): Promise<boolean> {
    const { engine } = await this.weights.staleCache(pool, { serverId, weightVersion, start });
    if (engine === undefined) return true;
    try {
      await this.engines.adapterOf({ ...engine, pool }).resetPrefixCache(RESET_TIMEOUT_MS);
      this.metrics.prefixCacheResets.inc({ outcome: 'reset' });
      return true;
    } catch (error) {
      if (isBroomwagonError(error, 'ENGINE_REJECTED')) return true;
      const message = 'A prefix cache was not reset: its server keeps the older weight version';
      this.logger.error({ err: error, pool, serverId, weightVersion }, message);
      this.metrics.prefixCacheResets.inc({ outcome: 'failed' });
      return false;
    }
  }
}
