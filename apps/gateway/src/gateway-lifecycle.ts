import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { HolderLifecycle, WorkerSession } from '@broomwagon/generation';
import { GenerationRegistry } from './core/generation-registry';
import { PartialSaves } from './core/partial-saves';

/** Registers the gateway when it starts, and ends its generations before NATS is closed. */
@Injectable()
export class GatewayLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    private readonly holder: HolderLifecycle,
    private readonly session: WorkerSession,
    private readonly generations: GenerationRegistry,
    private readonly saves: PartialSaves,
  ) {}

  onApplicationBootstrap(): void {
    this.holder.start();
    void this.session.established();
  }

  /** Refuses new generations, saves all tokens, waits for running ones, stops the rest, and deregisters. */
  async beforeApplicationShutdown(): Promise<void> {
    this.generations.drain();
    await this.saves.saveAll();
    await this.holder.end({
      count: () => this.generations.size,
      idle: () => this.generations.idle(),
      stopAll: (cause) => this.generations.stopAll(cause),
    });
  }
}
