import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { HealthRegistry } from '@broomwagon/platform';
import { LeaseReleaser } from '../leases/lease-releaser';
import { Heartbeat } from './heartbeat';
import { HolderConfig } from '../holder/holder.config';
import { WorkerSession } from '../leases/worker-session';

/** Maximum time to end stopped responses, and maximum time to release their leases, milliseconds. */
const END_MS = 10_000;

/** The responses that a process generates at its shutdown. */
export interface RunningGenerations {
  count(): number;
  /** Resolves when no response is generated. */
  idle(): Promise<unknown>;
  stopAll(cause: 'shutdown'): void;
}

/** Registers a process that holds leases when it starts, and deregisters it before NATS is closed. */
@Injectable()
export class HolderLifecycle {
  private readonly logger = new Logger(HolderLifecycle.name);

  constructor(
    private readonly session: WorkerSession,
    private readonly heartbeat: Heartbeat,
    private readonly releaser: LeaseReleaser,
    private readonly config: HolderConfig,
    private readonly health: HealthRegistry,
  ) {}

  start(): void {
    this.health.addReadiness('registration', async () => {
      if (this.session.current() === undefined) throw new Error('not registered');
    });
    this.heartbeat.start();
  }

  /** Waits for running responses, stops the rest, and deregisters. */
  async end(running: RunningGenerations): Promise<void> {
    await within(this.config.drainMs, running.idle());
    if (running.count() > 0) {
      this.logger.log(`Stopping ${running.count()} generations`);
      running.stopAll('shutdown');
      await within(END_MS, running.idle());
    }
    await within(END_MS, this.releaser.idle());
    await this.heartbeat.stop();
    await this.session.close();
  }
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}
