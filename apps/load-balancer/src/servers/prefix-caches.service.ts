import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type PoolName, type ServerId } from '@broomwagon/contracts';
import { type ServerStart, WeightStore } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { EngineHealth } from './engine-health';

/** Maximum time of a reset, milliseconds. Callers wait for 5 s, in which `server.register` also probes the engine. */
const RESET_TIMEOUT_MS = 3_000;

/**
 * Prevents the use of cache entries of other weights. A request carries the salt of its lease, which changes with the
 * weights. An engine without salts must reset its prefix cache before the reported weights count. Until the reset, its
 * server takes no leases.
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
   * Whether the reported weights of a server count. False when its engine has no salts and has not reset its cache. An
   * engine without a route for a reset is not called.
   * @param by `start`: the start that is being registered, since a new start has no cache of older weights; `isLoad`:
   *   the caller may have loaded other weights under the same version
   * @throws BroomwagonError UNAVAILABLE
   */
  async mayTake(
    pool: PoolName,
    serverId: ServerId,
    weightVersion: number,
    by: { start?: ServerStart; isLoad?: boolean } = {},
  ): Promise<boolean> {
    const { isReset, error } = await this.reset(pool, { serverId, weightVersion, ...by });
    const context = { pool, serverId, weightVersion, err: error };
    const message = 'The prefix cache is not reset: the server takes no leases until it is, tried at each probe';
    if (error !== undefined) this.logger.error(context, message);
    else if (!isReset) this.logger.log(context, `${message} when no request runs`);
    return isReset;
  }

  /**
   * Repeats the reset for a server with `pendingWeightVersion`.
   * @returns `emptiedSinceMs` of the update that ends the wait; undefined when the engine has not reset its cache
   * @throws BroomwagonError UNAVAILABLE
   */
  async resetPending(pool: PoolName, serverId: ServerId, weightVersion: number): Promise<number | undefined> {
    const { isReset, beganMs } = await this.reset(pool, { serverId, weightVersion });
    return isReset ? beganMs : undefined;
  }

  private async reset(
    pool: PoolName,
    report: { serverId: ServerId; weightVersion: number; start?: ServerStart; isLoad?: boolean },
  ): Promise<{ isReset: boolean; beganMs: number; error?: unknown }> {
    const { engine, needed, busy, beganMs } = await this.weights.staleCache(pool, report);
    if (engine === undefined) return { isReset: true, beganMs };
    if (busy === true) return { isReset: false, beganMs };
    try {
      await this.engines.getAdapter({ ...engine, pool }).resetPrefixCache(RESET_TIMEOUT_MS);
      this.metrics.prefixCacheResets.inc({ pool, outcome: 'reset' });
      return { isReset: true, beganMs };
    } catch (error) {
      if (isBroomwagonError(error, 'ENGINE_REJECTED') || needed !== true) return { isReset: true, beganMs };
      this.metrics.prefixCacheResets.inc({ pool, outcome: 'failed' });
      return { isReset: false, beganMs, error };
    }
  }
}
