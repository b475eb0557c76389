import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, type Claim, type ClaimReply, type ClaimRequest } from '@broomwagon/contracts';
import { ControlPlane, isExpiredEpoch, unlessAborted, type WorkerEpoch, WorkerSession } from '@broomwagon/generation';
import { retryDelayMs } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import { AttemptRegistry } from '../attempts/attempt-registry';
import { AttemptRunner } from '../attempts/attempt-runner';
import { PayloadGate } from '../attempts/payload-gate';
import { WorkerConfig } from '../worker.config';
import { ClaimSize } from './claim-size';

/**
 * Maximum time for repeats of a claim, milliseconds. The coordinator keeps the answer for this time, and a later repeat
 * could lose the granted requests.
 */
const CLAIM_DEADLINE_MS = 55_000;
const REPLY_MARGIN_MS = 2_000;
/** Time after which a claim is repeated, milliseconds: its replica may have died. The repeat keeps the same place. */
const REPEAT_AFTER_MS = 5_000;
const ERROR_PAUSE_MS = 500;

/** Claims requests while this worker has free places. */
@Injectable()
export class ClaimLoop {
  private readonly logger = new Logger(ClaimLoop.name);
  private readonly stopping = new AbortController();
  private readonly size = new ClaimSize();
  private readonly running = new Set<Promise<unknown>>();
  private loop: Promise<void> | undefined;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly session: WorkerSession,
    private readonly registry: AttemptRegistry,
    private readonly runner: AttemptRunner,
    private readonly gate: PayloadGate,
    private readonly config: WorkerConfig,
  ) {}

  start(): void {
    this.loop ??= this.claimAll();
  }

  /** Stops claiming. A parked claim may still be granted requests, which the later deregistration returns. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  /** Resolves when all attempts have ended. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async claimAll(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.gate.opened(signal);
      const worker = await unlessAborted(signal, this.session.established());
      const free = this.config.concurrency - this.registry.size;
      if (worker === undefined) return;
      if (free <= 0) {
        await this.registry.nextEnd(signal);
        continue;
      }
      try {
        await this.claim(worker, this.size.next(free));
      } catch (error) {
        if (isExpiredEpoch(error)) this.session.fence(worker);
        else {
          this.logger.warn({ err: error }, 'The claim failed');
          await delay(ERROR_PAUSE_MS, undefined, { signal }).catch(() => undefined);
        }
      }
    }
  }

  private async claim(worker: WorkerEpoch, max: number): Promise<void> {
    const { signal } = this.stopping;
    const call = this.ask({ claimId: randomUUID(), max, job: this.config.job, ...worker }, signal);
    const reply = await unlessAborted(signal, unlessAborted(this.session.epochSignal, call));
    await failpoint('worker.claim.after-reply');
    // If the epoch expired while the claim waited, the granted requests are returned with the epoch.
    if (reply === undefined || !this.session.isCurrent(worker)) return;
    this.size.observe(max, reply.claims.length);
    for (const claim of reply.claims) this.begin(claim, worker);
  }

  /** Repeats one claim until it is answered. A repeat waits only for the rest of the time. */
  private async ask(claim: Omit<ClaimRequest, 'waitMs'>, signal: AbortSignal): Promise<ClaimReply> {
    const waitsUntilMs = Date.now() + this.config.claimWaitMs;
    const givesUpAtMs = Date.now() + CLAIM_DEADLINE_MS;
    for (let tries = 0; ; tries++) {
      const waitMs = Math.max(0, waitsUntilMs - Date.now());
      const timeoutMs = Math.min(waitMs, REPEAT_AFTER_MS) + REPLY_MARGIN_MS;
      try {
        return await this.controlPlane.call('request.claim', { ...claim, waitMs }, { timeoutMs });
      } catch (error) {
        const again = isBroomwagonError(error) && error.retryable && Date.now() < givesUpAtMs && !signal.aborted;
        if (!again) throw error;
        if (error.code === 'TIMEOUT') continue;
        await delay(retryDelayMs(tries, error.retryAfterMs ?? 0, {}), undefined, { signal }).catch(() => undefined);
        // The pool is paused or its weights change, so there are no requests to claim.
        if (error.code === 'POOL_PAUSED') return { claims: [] };
      }
    }
  }

  private begin(claim: Claim, worker: WorkerEpoch): void {
    const attempt = this.registry.admit(claim, worker);
    if (attempt === undefined) return;
    const work: Promise<unknown> = this.runner.run(attempt).finally(() => this.running.delete(work));
    this.running.add(work);
  }
}
