import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { Heartbeat, LeaseReleaser, WorkerSession } from '@broomwagon/generation';
import { HealthRegistry } from '@broomwagon/platform';
import { AttemptRegistry } from './attempts/attempt-registry';
import { ClaimLoop } from './claims/claim-loop';
import { WorkerConfig } from './worker.config';

/** Maximum time to store and report the tokens after the streams are stopped. */
const HAND_BACK_MS = 10_000;

/** Starts the worker after the application, and stops it before NATS is closed. */
@Injectable()
export class WorkerLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(WorkerLifecycle.name);

  constructor(
    private readonly session: WorkerSession,
    private readonly heartbeat: Heartbeat,
    private readonly claims: ClaimLoop,
    private readonly attempts: AttemptRegistry,
    private readonly releaser: LeaseReleaser,
    private readonly config: WorkerConfig,
    private readonly health: HealthRegistry,
  ) {}

  onApplicationBootstrap(): void {
    this.health.addReadiness('registration', async () => {
      if (this.session.current() === undefined) throw new Error('not registered');
    });
    this.heartbeat.start();
    this.claims.start();
  }

  /** Stops claiming, waits for running requests, returns the rest with their tokens, and deregisters. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.claims.stop();
    await within(this.config.drainMs, this.claims.idle());
    if (this.attempts.size > 0) {
      this.logger.log(`Returning ${this.attempts.size} requests`);
      this.attempts.stopAll('shutdown');
      await within(HAND_BACK_MS, this.claims.idle());
    }
    await within(HAND_BACK_MS, this.releaser.idle());
    await this.heartbeat.stop();
    await this.session.close();
  }
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}
