import { Injectable } from '@nestjs/common';
import type { LeaseGrant } from '@broomwagon/contracts';
import { createEngineAdapter, EngineAccess, type EngineAdapter } from '@broomwagon/engines';
import { HolderConfig } from '../holder/holder.config';
import { PoolPause } from './pool-pause';

/** Maximum adapters that are kept; above this number the least recently used adapter is removed. */
const MAX_ADAPTERS = 4_096;

/** Keeps one adapter for each epoch of a server, which all streams share. */
@Injectable()
export class EngineAdapters {
  private readonly adapters = new Map<string, EngineAdapter>();

  private readonly access: EngineAccess;

  constructor(
    private readonly config: HolderConfig,
    private readonly pause: PoolPause,
  ) {
    this.access = new EngineAccess(config.engineAllowList);
  }

  /** Returns the adapter of one epoch of a server: adapters cache properties of one start of their engine. */
  of({ endpoint, dialect, model, epoch }: Pick<LeaseGrant, 'endpoint' | 'dialect' | 'model' | 'epoch'>): EngineAdapter {
    const key = JSON.stringify([endpoint, dialect, model, epoch]);
    const adapter =
      this.adapters.get(key) ??
      createEngineAdapter(dialect, endpoint, {
        model,
        apiKey: this.config.findEngineKey(this.config.pool),
        access: this.access,
        isPaused: () => this.pause.isPaused(),
        stallTimeoutMs: this.config.engineStallTimeoutMs,
        firstTokenTimeoutMs: this.config.engineFirstTokenTimeoutMs,
        maxStreams: this.config.engineMaxStreams,
      });
    this.adapters.delete(key);
    this.adapters.set(key, adapter);
    if (this.adapters.size > MAX_ADAPTERS) {
      const [oldest] = this.adapters.keys();
      this.adapters.delete(oldest as string);
    }
    return adapter;
  }
}
