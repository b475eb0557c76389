import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type WorkerHeartbeatReply } from '@broomwagon/contracts';
import { Metrics, PeriodicTask } from '@broomwagon/platform';
import { ServerSigns } from '../engine/server-signs';
import { HeldLeases } from '../leases/held-leases';
import type { WorkerEpoch } from '../leases/leased-call';
import { ControlPlane } from '../holder/control-plane';
import { HeldAttempts } from '../leases/held-attempts';
import { HolderConfig } from '../holder/holder.config';
import { Reconciler } from './reconciler';
import { isExpiredEpoch, WorkerSession } from '../leases/worker-session';

/** Running calls make the counts differ for a moment; a mismatch that stays starts a sync. */
const MISMATCHES_BEFORE_SYNC = 2;

/**
 * Keeps all leases and attempts of this worker alive, compares them with the counts in Redis, and reports signs of life
 * of servers.
 */
@Injectable()
export class Heartbeat {
  private readonly logger = new Logger(Heartbeat.name);
  private readonly task: PeriodicTask;
  private readonly timeoutMs: number;
  private mismatches = 0;
  private generation: string | undefined;
  /** Time of Redis until which each heartbeat starts a sync. */
  private syncUntilMs = 0;
  private reconciling: Promise<void> | undefined;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly session: WorkerSession,
    private readonly attempts: HeldAttempts,
    private readonly leases: HeldLeases,
    private readonly reconciler: Reconciler,
    private readonly signs: ServerSigns,
    private readonly config: HolderConfig,
    metrics: Metrics,
  ) {
    this.timeoutMs = config.workerTtlMs / 3;
    const { heartbeatIntervalMs: intervalMs } = config;
    this.task = new PeriodicTask({ name: 'heartbeat', intervalMs, metrics }, (signal) => this.beat(signal));
  }

  start(): void {
    this.task.start();
  }

  async stop(): Promise<void> {
    await this.task.stop();
    await this.reconciling;
  }

  /**
   * Sends a heartbeat. If the counts differ twice in a row, or the reply asks for a sync, a sync begins. The heartbeat
   * does not wait for the sync, which may take longer than the epoch lives.
   * @param signal ends the repeats
   */
  async beat(signal?: AbortSignal): Promise<void> {
    const worker = this.session.current();
    if (worker === undefined) return;
    const reply = await this.send(worker, signal);
    if (reply === undefined || !this.session.isCurrent(worker)) return;
    const agrees =
      reply.leaseCount === this.leases.count &&
      reply.leaseDigest === this.leases.digest &&
      reply.attemptCount === this.attempts.size;
    this.mismatches = agrees ? 0 : this.mismatches + 1;
    const mustSync = this.sawGeneration(reply) || reply.syncAsked;
    if (!mustSync && this.mismatches < MISMATCHES_BEFORE_SYNC) return;
    this.mismatches = 0;
    this.reconciling ??= this.reconciler
      .reconcile(worker, reply.serverTimeMs)
      .finally(() => (this.reconciling = undefined));
  }

  /**
   * Whether a sync is due after a change of the pool generation: a Redis that was set back may have lost one attempt
   * and assigned another, with equal counts. Later syncs return attempts that are too young for the first sync.
   */
  private sawGeneration({ generation, serverTimeMs }: WorkerHeartbeatReply): boolean {
    if (this.generation !== undefined && this.generation !== generation) {
      this.syncUntilMs = serverTimeMs + this.config.unclaimedAfterMs + 2 * this.timeoutMs;
    }
    this.generation = generation;
    return serverTimeMs < this.syncUntilMs;
  }

  private async send(worker: WorkerEpoch, signal?: AbortSignal): Promise<WorkerHeartbeatReply | undefined> {
    const held = { leaseCount: this.leases.count, leaseDigest: this.leases.digest, attemptCount: this.attempts.size };
    // A link that drops bytes is cut after one interval. With a pause after one interval of repeats, the epoch would
    // expire before the next heartbeat.
    const options = { deadlineMs: 2 * this.timeoutMs, attemptTimeoutMs: this.timeoutMs / 2, signal };
    const body = { ...worker, ...held };
    const servers = this.signs.report();
    try {
      if (servers.length === 0) return await this.controlPlane.callWithRetry('worker.heartbeat', body, options);
      return await this.controlPlane
        .callWithRetry('worker.heartbeat', { ...body, servers }, options)
        .catch((error: unknown) => {
          // A load-balancer of the previous release does not know the field `servers`, or a field of it.
          if (!isBroomwagonError(error, 'VALIDATION_FAILED')) throw error;
          return this.controlPlane.callWithRetry('worker.heartbeat', body, options);
        });
    } catch (error) {
      if (isExpiredEpoch(error)) this.session.fence(worker);
      else this.logger.warn({ err: error }, 'The heartbeat failed');
      return undefined;
    }
  }
}
