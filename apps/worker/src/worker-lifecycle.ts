import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { HolderLifecycle } from '@broomwagon/generation';
import { AttemptRegistry } from './attempts/attempt-registry';
import { PartialSaver } from './attempts/partial-saver';
import { ClaimLoop } from './claims/claim-loop';

/** Starts claims after the application has started, and stops them before NATS is closed. */
@Injectable()
export class WorkerLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    private readonly holder: HolderLifecycle,
    private readonly claims: ClaimLoop,
    private readonly attempts: AttemptRegistry,
    private readonly saver: PartialSaver,
  ) {}

  onApplicationBootstrap(): void {
    this.holder.start();
    this.claims.start();
  }

  /**
   * Stops claiming, saves all tokens, waits for running requests, returns unfinished requests with their tokens, and
   * deregisters. A process that is killed meanwhile loses only the tokens since the save.
   */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.claims.stop(), this.saver.saveAll()]);
    await this.holder.end({
      count: () => this.attempts.size,
      idle: () => this.claims.idle(),
      stopAll: (cause) => this.attempts.stopAll(cause),
    });
  }
}
