import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type EngineCapabilities, type PauseMode, type ServerStatus } from '@broomwagon/contracts';
import { createEngineAdapter, EngineAccess, type EngineAdapter, type EngineReport } from '@broomwagon/engines';
import { LoadBalancerConfig } from '../load-balancer.config';

/** An engine, and the pool whose key it gets. */
export type PoolEngine = Pick<ServerStatus, 'dialect' | 'endpoint'> & { pool: string };

/** Asks an engine whether it lives. A port, so that tests can speak for engines. */
export abstract class EngineHealth {
  /** True when the endpoint answers within `timeoutMs`; a refusal (4xx) is an answer too. Never throws. */
  abstract answers(server: PoolEngine, timeoutMs: number): Promise<boolean>;

  /** What the engine says of itself within `timeoutMs`. Never throws. */
  report(_server: PoolEngine, _timeoutMs: number): Promise<EngineReport> {
    return Promise.resolve({});
  }

  /** Stops generating, as the adapters say. @throws BroomwagonError of the adapter, within its call timeout */
  pause(_server: PoolEngine, _mode: PauseMode): Promise<void> {
    return Promise.resolve();
  }

  /** @throws BroomwagonError of the adapter, within its call timeout */
  resume(_server: PoolEngine): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Forgets what older weights computed, as the adapters say. @throws BroomwagonError of the adapter, within
   * `timeoutMs`
   */
  resetPrefixCache(_server: PoolEngine, _timeoutMs: number): Promise<void> {
    return Promise.resolve();
  }

  /** What the engine can do; undefined when it does not say so, or not as its dialect would. Never throws. */
  capabilities(_server: PoolEngine): Promise<EngineCapabilities | undefined> {
    return Promise.resolve(undefined);
  }
}

/** Adapters remembered; above it the oldest goes. */
const MOST_ADAPTERS = 16_384;

/** Asks over HTTP. */
@Injectable()
export class HttpEngineHealth extends EngineHealth {
  private readonly adapters = new Map<string, EngineAdapter>();

  constructor(
    private readonly config: LoadBalancerConfig,
    private readonly access: EngineAccess,
  ) {
    super();
  }

  async answers(server: PoolEngine, timeoutMs: number): Promise<boolean> {
    try {
      await this.adapterOf(server).health(AbortSignal.timeout(timeoutMs));
      return true;
    } catch (error) {
      return isBroomwagonError(error, 'ENGINE_REJECTED') || isBroomwagonError(error, 'ENGINE_PROTOCOL');
    }
  }

  override report(server: PoolEngine, timeoutMs: number): Promise<EngineReport> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs, {});
      void this.adapterOf(server)
        .report()
        .then((report) => {
          clearTimeout(timer);
          resolve(report);
        });
    });
  }

  override async capabilities(server: PoolEngine): Promise<EngineCapabilities | undefined> {
    const description = await this.adapterOf(server)
      .probe()
      .catch(() => undefined);
    return description?.capabilities;
  }

  override async pause(server: PoolEngine, mode: PauseMode): Promise<void> {
    await this.adapterOf(server).pause(mode);
  }

  override async resume(server: PoolEngine): Promise<void> {
    await this.adapterOf(server).resume();
  }

  override async resetPrefixCache(server: PoolEngine, timeoutMs: number): Promise<void> {
    await this.adapterOf(server).resetPrefixCache(timeoutMs);
  }

  private adapterOf({ pool, dialect, endpoint }: PoolEngine): EngineAdapter {
    const name = `${pool} ${dialect} ${endpoint}`;
    let adapter = this.adapters.get(name);
    if (!adapter) {
      const oldest = this.adapters.size >= MOST_ADAPTERS ? this.adapters.keys().next().value : undefined;
      if (oldest !== undefined) this.adapters.delete(oldest);
      const apiKey = this.config.engineKeyOf(pool);
      adapter = createEngineAdapter(dialect, endpoint, { apiKey, access: this.access });
      this.adapters.set(name, adapter);
    }
    return adapter;
  }
}
