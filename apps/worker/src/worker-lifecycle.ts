import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { HolderLifecycle } from '@broomwagon/generation';
import { AttemptRegistry } from './attempts/attempt-registry';
import { ClaimLoop } from './claims/claim-loop';

/** Starts claims after the application has started, and stops them before NATS is closed. */
@Injectable()
export class WorkerLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    private readonly holder: HolderLifecycle,
    private readonly claims: ClaimLoop,
    private readonly attempts: AttemptRegistry,
  ) {}

  onApplicationBootstrap(): void {
    this.holder.start();
    this.claims.start();
  }

  /** Stops claiming, waits for running requests, returns unfinished requests with their tokens, and deregisters. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.claims.stop();
    await this.holder.end({
      count: () => this.attempts.size,
      idle: () => this.claims.idle(),
      stopAll: (cause) => this.attempts.stopAll(cause),
    });
  }
}
