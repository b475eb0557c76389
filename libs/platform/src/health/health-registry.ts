import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { OnModuleDestroy } from '@nestjs/common';
import type { ReadinessCheck } from '@broomwagon/contracts';
import type { MessagingConnection, NatsTransport } from '@broomwagon/messaging';

/** Maximum time of a readiness check without a time of its own, milliseconds. */
const CHECK_TIMEOUT_MS = 500;

/** The process is not live when the p99 of the lag of its event loop over ten seconds is above this. */
const MAX_LOOP_LAG_MS = 2_000;

/** The checks of the health routes. A check that fails rejects with the reason. */
export class HealthRegistry implements OnModuleDestroy {
  private readonly loopDelay = monitorEventLoopDelay({ resolution: 20 });
  private readonly window: NodeJS.Timeout;
  private readonly readiness = new Map<string, HealthCheck>();
  private started = false;
  private draining = false;
  private resolveRestart!: (reason: Error) => void;
  /** Resolves, with the reason, when only a restart of the process helps. */
  readonly needsRestart = new Promise<Error>((resolve) => (this.resolveRestart = resolve));

  constructor(
    private readonly connection: MessagingConnection,
    private readonly transport: NatsTransport,
  ) {
    this.loopDelay.enable();
    this.window = setInterval(() => this.loopDelay.reset(), 10_000).unref();
    void connection.needsRestart.then(this.requestRestart);
  }

  /** Adds a condition of readiness, e.g. a ping of Redis. Slower than `timeoutMs` (default 500) is not ready. */
  addReadiness(name: string, check: HealthCheck, timeoutMs = CHECK_TIMEOUT_MS): void {
    this.readiness.set(name, () => withTimeout(check(), timeoutMs));
  }

  /**
   * Ends the process gracefully, for example because a password of its environment was replaced: a supervisor starts
   * the process again with the new one.
   */
  readonly requestRestart = (reason: Error): void => this.resolveRestart(reason);

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
          return lagMs > MAX_LOOP_LAG_MS && fail(`the event loop lags ${Math.round(lagMs)} ms`);
        },
      ],
    ]);
  }

  /** Whether requests may be sent here. */
  readyChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([
      ['draining', async () => (this.draining || this.transport.isDraining()) && fail('shutting down')],
      ['nats', () => this.checkNats()],
      ['subscriptions', async () => !this.transport.isBound() && fail('not bound')],
      ...this.readiness,
    ]);
  }

  /** Runs the checks of readiness once. */
  runReadyChecks(): Promise<ReadinessCheck[]> {
    return Promise.all([...this.readyChecks()].map(([check, run]) => runCheck(check, run)));
  }

  startChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([['started', async () => !this.started && fail('starting')]]);
  }

  /** A round trip, since a link whose packets are dropped reports no error. */
  private async checkNats(): Promise<string | undefined> {
    const problem = this.connection.problem();
    if (problem !== undefined) fail(problem);
    await withTimeout(this.connection.nats.flush(), CHECK_TIMEOUT_MS);
    return this.connection.warning();
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

/**
 * Check of a condition that the service cannot work without. Rejects when it fails; a text is a warning beside success.
 */
export type HealthCheck = () => Promise<unknown>;

/** Runs a check, and resolves with its outcome in any case. */
export async function runCheck(check: string, run: HealthCheck): Promise<ReadinessCheck> {
  try {
    const warning = await run();
    return { check, passes: true, reason: typeof warning === 'string' ? warning : undefined };
  } catch (error) {
    return { check, passes: false, reason: (error as Error).message };
  }
}
