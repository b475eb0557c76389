import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { setTimeout as delay } from 'node:timers/promises';
import { HeldLeases } from './held-leases';
import type { WorkerEpoch } from './leased-call';
import { ControlPlane } from '../holder/control-plane';
import { HeldAttempts } from './held-attempts';
import { HolderConfig } from '../holder/holder.config';
import { HolderMetrics } from '../holder/holder-metrics';

const REGISTER_DEADLINE_MS = 15_000;
const REGISTER_PAUSE_MS = 500;

/** Whether the worker epoch has expired or the worker is unknown: the worker must register again. */
export function isExpiredEpoch(error: unknown): boolean {
  return isBroomwagonError(error, 'FENCED') || isBroomwagonError(error, 'WORKER_NOT_FOUND');
}

/**
 * The registration of this worker. A worker is fenced if it sent no heartbeat for too long, or another process has its
 * id. Then everything of the old epoch is stopped and removed, and the worker registers again.
 */
@Injectable()
export class WorkerSession {
  private readonly logger = new Logger(WorkerSession.name);
  private readonly closing = new AbortController();
  private epoch: WorkerEpoch | undefined;
  private epochEnd = new AbortController();
  private registering: Promise<void> | undefined;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly attempts: HeldAttempts,
    private readonly leases: HeldLeases,
    private readonly metrics: HolderMetrics,
    private readonly config: HolderConfig,
  ) {}

  /** The current epoch; undefined while there is none. */
  current(): WorkerEpoch | undefined {
    return this.epoch;
  }

  isCurrent(worker: WorkerEpoch): boolean {
    return this.epoch?.workerEpoch === worker.workerEpoch;
  }

  /** Aborted when the current epoch is expired. */
  get epochSignal(): AbortSignal {
    return this.epochEnd.signal;
  }

  /** Waits for an epoch; undefined once the session is closed. */
  async established(): Promise<WorkerEpoch | undefined> {
    while (this.epoch === undefined && !this.closing.signal.aborted) {
      this.registering ??= this.register().finally(() => (this.registering = undefined));
      await this.registering;
    }
    return this.epoch;
  }

  /** Ends an epoch that has expired, as the answer to a call reports. */
  fence(worker: WorkerEpoch): void {
    if (!this.isCurrent(worker)) return;
    this.logger.warn({ ...worker }, 'The epoch has expired: all attempts and calls are stopped');
    this.metrics.fences.inc();
    this.epoch = undefined;
    this.epochEnd.abort();
    this.epochEnd = new AbortController();
    this.attempts.forgetAll();
    this.leases.forgetAll();
    void this.established();
  }

  /** Deregisters the worker: its leases and attempts are returned at once. Never throws. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.registering;
    const worker = this.epoch;
    if (worker === undefined) return;
    this.epoch = undefined;
    await this.controlPlane
      .callWithRetry('worker.deregister', worker, { deadlineMs: 2_000 })
      .catch((error: unknown) => this.logger.warn({ err: error }, 'Could not deregister; the epoch will expire'));
  }

  private async register(): Promise<void> {
    const { workerId, workerTtlMs: ttlMs } = this.config;
    let registrationId = randomUUID();
    const { signal } = this.closing;
    while (!signal.aborted) {
      try {
        const deadlineMs = REGISTER_DEADLINE_MS;
        const body = { workerId, registrationId, ttlMs };
        const { workerEpoch } = await this.controlPlane.callWithRetry('worker.register', body, { deadlineMs, signal });
        this.epoch = { workerId, workerEpoch };
        this.logger.log({ workerId, workerEpoch }, 'Registered');
        return;
      } catch (error) {
        this.logger.warn({ err: error, workerId }, 'Could not register yet');
        // Another process has registered under this name meanwhile.
        if (isBroomwagonError(error, 'FENCED')) registrationId = randomUUID();
        await delay(REGISTER_PAUSE_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
