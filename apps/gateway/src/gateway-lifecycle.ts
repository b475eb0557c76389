import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { Heartbeat, LeaseReleaser, WorkerSession } from '@broomwagon/generation';
import { HealthRegistry } from '@broomwagon/platform';
import { GatewayConfig } from './gateway.config';
import { GenerationRegistry } from './generations/generation-registry';

/** Maximum time to stop engines and release leases after the generations are stopped. */
const RELEASE_MS = 10_000;

/** Registers the gateway when it starts, and ends its generations before NATS is closed. */
@Injectable()
export class GatewayLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(GatewayLifecycle.name);

  constructor(
    private readonly session: WorkerSession,
    private readonly heartbeat: Heartbeat,
    private readonly generations: GenerationRegistry,
    private readonly releaser: LeaseReleaser,
    private readonly config: GatewayConfig,
    private readonly health: HealthRegistry,
  ) {}

  onApplicationBootstrap(): void {
    this.health.addReadiness('registration', async () => {
      if (this.session.current() === undefined) throw new Error('not registered');
    });
    this.heartbeat.start();
    void this.session.established();
  }

  /** Refuses new generations, waits for running ones, stops the rest, and deregisters. */
  async beforeApplicationShutdown(): Promise<void> {
    this.generations.drain();
    await within(this.config.drainMs, this.generations.idle());
    if (this.generations.size > 0) {
      this.logger.log(`Stopping ${this.generations.size} generations`);
      this.generations.stopAll('shutdown');
      await within(RELEASE_MS, this.generations.idle());
    }
    await within(RELEASE_MS, this.releaser.idle());
    await this.heartbeat.stop();
    await this.session.close();
  }
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}
