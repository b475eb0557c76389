import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type ServerStatus } from '@broomwagon/contracts';
import {
  createEngineAdapter,
  EngineAccess,
  type EngineAdapter,
  type EngineDescription,
  type EngineReport,
  NO_ROUTE,
} from '@broomwagon/engines';
import { LoadBalancerConfig } from '../load-balancer.config';

/** An engine in a pool. Calls use the API key of the pool. */
export type PoolEngine = Pick<ServerStatus, 'dialect' | 'endpoint'> & { pool: string };

/** Maximum adapters that are kept. A further adapter replaces the oldest adapter. */
const MAX_ADAPTERS = 16_384;

/** Asks the engines of all pools for health and reports, and keeps their adapters. */
@Injectable()
export class EngineHealth {
  private readonly adapters = new Map<string, EngineAdapter>();

  constructor(
    private readonly config: LoadBalancerConfig,
    private readonly access: EngineAccess,
  ) {}

  /**
   * True when the health route answers within `timeoutMs`, also with a refusal (4xx). A missing route is no answer,
   * because every engine has a health route. Never throws.
   */
  async answers(server: PoolEngine, timeoutMs: number): Promise<boolean> {
    try {
      await this.getAdapter(server).health(AbortSignal.timeout(timeoutMs));
      return true;
    } catch (error) {
      if (!isBroomwagonError(error, 'ENGINE_REJECTED')) return false;
      return !NO_ROUTE.has((error.details as { status?: number } | undefined)?.status ?? 0);
    }
  }

  /** The report of an engine: load, start, weights, models. Empty after `timeoutMs`. Never throws. */
  report(server: PoolEngine, timeoutMs: number): Promise<EngineReport> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs, {});
      void this.getAdapter(server)
        .report()
        .then((report) => {
          clearTimeout(timer);
          resolve(report);
        });
    });
  }

  /** @throws BroomwagonError ENGINE_PROTOCOL when the engine does not speak its dialect, ENGINE_UNREACHABLE */
  describe(server: PoolEngine): Promise<EngineDescription> {
    return this.getAdapter(server).probe();
  }

  getAdapter({ pool, dialect, endpoint }: PoolEngine): EngineAdapter {
    const name = `${pool} ${dialect} ${endpoint}`;
    let adapter = this.adapters.get(name);
    if (!adapter) {
      const oldest = this.adapters.size >= MAX_ADAPTERS ? this.adapters.keys().next().value : undefined;
      if (oldest !== undefined) this.adapters.delete(oldest);
      const apiKey = this.config.findEngineKey(pool);
      adapter = createEngineAdapter(dialect, endpoint, { apiKey, access: this.access });
      this.adapters.set(name, adapter);
    }
    return adapter;
  }
}
