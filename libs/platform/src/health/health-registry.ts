import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { OnModuleDestroy } from '@nestjs/common';
import type { ReadinessCheck } from '@broomwagon/contracts';
import type { MessagingConnection, NatsTransport } from '@broomwagon/messaging';

const CHECK_TIMEOUT_MS = 500;

/** Maximum lag of the event loop (p99 over ten seconds) of a live process, milliseconds. */
const MAX_LOOP_LAG_MS = 2_000;

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

  /** Adds a readiness check, for example a ping of Redis. A check that takes longer than `timeoutMs` fails. */
  addReadiness(name: string, check: HealthCheck, timeoutMs = CHECK_TIMEOUT_MS): void {
    this.readiness.set(name, () => withTimeout(check(), timeoutMs));
  }

  /**
   * Ends the process gracefully, for example because a password in the environment was replaced. A supervisor then
   * starts the process with the new environment.
   */
  readonly requestRestart = (reason: Error): void => this.resolveRestart(reason);

  markStarted(): void {
    this.started = true;
  }

  /** Makes the service not ready from now on. */
  markDraining(): void {
    this.draining = true;
  }

  /** Returns the checks of `/livez`, which fail if a restart would help. No check is for Redis. */
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

  /** Returns the checks of `/readyz`: requests may be sent if all pass. */
  readyChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([
      ['draining', async () => (this.draining || this.transport.isDraining()) && fail('shutting down')],
      ['nats', () => this.checkNats()],
      ['subscriptions', async () => !this.transport.isBound() && fail('not bound')],
      ...this.readiness,
    ]);
  }

  runReadyChecks(): Promise<ReadinessCheck[]> {
    return Promise.all([...this.readyChecks()].map(([check, run]) => runCheck(check, run)));
  }

  startChecks(): Map<string, HealthCheck> {
    return new Map<string, HealthCheck>([['started', async () => !this.started && fail('starting')]]);
  }

  /** Checks the link to NATS by a round trip, because a link that drops packets reports no error. */
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
  // The timeout may reject after the race has ended.
  late.catch(() => undefined);
  return Promise.race([work, late]);
}

/**
 * Checks a condition that the service needs. Rejects with the reason if the check fails; a resolved text is a warning.
 */
export type HealthCheck = () => Promise<unknown>;

/** Runs a check, and returns the outcome. Never rejects. */
export async function runCheck(check: string, run: HealthCheck): Promise<ReadinessCheck> {
  try {
    const warning = await run();
    return { check, passes: true, reason: typeof warning === 'string' ? warning : undefined };
  } catch (error) {
    return { check, passes: false, reason: (error as Error).message };
  }
}
