import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { OnModuleDestroy } from '@nestjs/common';
import type { MessagingConnection, NatsTransport } from '@broomwagon/messaging';

/** Something the service cannot work without. Settles when it is well, rejects when not. */
export type HealthCheck = () => Promise<unknown>;

/** The process is not live when the p99 of the lag of its event loop over ten seconds is above this. */
const MOST_LOOP_LAG_MS = 2_000;

/** The checks of the health routes. A check that fails rejects with the reason. */
export class HealthRegistry implements OnModuleDestroy {
  private readonly loopDelay = monitorEventLoopDelay({ resolution: 20 });
  private readonly window: NodeJS.Timeout;
  private readonly readiness = new Map<string, HealthCheck>();
  private started = false;
  private draining = false;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly transport: NatsTransport,
  ) {
    this.loopDelay.enable();
    this.window = setInterval(() => this.loopDelay.reset(), 10_000).unref();
  }

  /** Adds what readiness needs, e.g. a ping of Redis. Slower than `timeoutMs` (default 500) is not ready. */
  addReadiness(name: string, check: HealthCheck, timeoutMs = 500): void {
    this.readiness.set(name, () => withTimeout(check(), timeoutMs));
  }

  markStarted(): void {
    this.started = true;
  }

  /** From now on the service is not ready. */
  markDraining(): void {
    this.draining = true;
  }

  /** Whether a restart would help. Never Redis: restarting us does not repair it. */
  liveChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([
      ['nats', async () => this.connection.isClosed() && !this.draining && fail('the connection is closed for good')],
      [
        'event-loop',
        async () => {
          const lagMs = this.loopDelay.percentile(99) / 1e6;
          return lagMs > MOST_LOOP_LAG_MS && fail(`the event loop lags ${Math.round(lagMs)} ms`);
        },
      ],
    ]);
  }

  /** Whether requests may be sent here. */
  readyChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([
      ['draining', async () => (this.draining || this.transport.isDraining()) && fail('shutting down')],
      ['nats', async () => !this.connection.isConnected() && fail('not connected')],
      ['subscriptions', async () => !this.transport.isBound() && fail('not bound')],
      ...this.readiness,
    ]);
  }

  startChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([['started', async () => !this.started && fail('starting')]]);
  }

  onModuleDestroy(): void {
    clearInterval(this.window);
    this.loopDelay.disable();
  }
}

function fail(reason: string): never {
  throw new Error(reason);
}

function withTimeout(work: Promise<unknown>, timeoutMs: number): Promise<unknown> {
  const late = delay(timeoutMs, undefined, { ref: false }).then(() => fail(`no answer within ${timeoutMs} ms`));
  // The loser of the race may reject later.
  late.catch(() => undefined);
  return Promise.race([work, late]);
}
