import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { idPart, isBroomwagonError, type AcquireItem, type ErrorCode, type LeaseGrant } from '@broomwagon/contracts';
import { retryDelayMs } from '@broomwagon/messaging';
import { ControlPlane } from '../control-plane';
import { unlessAborted } from '../unless-aborted';
import { isExpiredEpoch, WorkerSession } from '../session/worker-session';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import { HeldLeases } from './held-leases';
import { LeaseReleaser } from './lease-releaser';

/** Time for a reply beyond the wait the call itself asked for. */
const REPLY_MARGIN_MS = 2_000;
/**
 * After this time the reply may be lost with its replica: the call is repeated and keeps its place in the queue. The
 * time doubles with each repeat, so that thousands of waiting calls stay cheap.
 */
const REPEAT_AFTER_MS = 5_000;
/** Pause after NO_SERVER_AVAILABLE: a pool without servers must not be asked in a hot loop. */
const NO_SERVER_PAUSE_MS = 250;

/** Refusals of the worker epoch or of this acquireId; another attempt may succeed. */
const EXPIRED = new Set<ErrorCode>(['FENCED', 'WORKER_NOT_FOUND', 'RELEASED', 'ABORTED']);

/** The outcome of asking for a server. `refused`: the acquire itself is wrong, and asking again cannot help. */
export type Acquisition = { lease: LeaseGrant } | { failed: 'stopped' | 'no-server' | 'refused'; message?: string };

/** Constraints of the acquire. */
type RoutingRequest = Pick<AcquireItem, 'contextTokens' | 'needs' | 'minWeightVersion'>;

/** Repeats the acquire until it is granted, the attempt is stopped, or a deadline passes. */
@Injectable()
export class LeaseAcquirer {
  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly session: WorkerSession,
    private readonly leases: HeldLeases,
    private readonly releaser: LeaseReleaser,
    private readonly config: WorkerConfig,
  ) {}

  /** Every call carries the same acquireId, so a lost reply never costs a second lease. Never throws. */
  async acquire(attempt: Attempt, request: RoutingRequest): Promise<Acquisition> {
    let endsAtMs = Date.now() + this.config.noServerDeadlineMs;
    this.leases.asking(attempt);
    let message: string | undefined;
    let refused = false;
    for (let tries = 0; !attempt.signal.aborted; tries++) {
      const leftMs = endsAtMs - Date.now();
      if (tries > 0 && leftMs <= 0) break;
      try {
        const lease = await unlessAborted(attempt.signal, this.ask(attempt, request, leftMs, tries));
        if (lease === undefined) break;
        this.leases.granted(attempt, lease.leaseId);
        return { lease };
      } catch (error) {
        message = (error as Error).message;
        if (isExpiredEpoch(error)) this.session.fence(attempt.worker);
        // The wait of a call is shorter than that of the attempt, which ends with its own deadline.
        if (isBroomwagonError(error, 'WAIT_TIMEOUT') || isBroomwagonError(error, 'TIMEOUT')) continue;
        if (!isBroomwagonError(error) || !error.retryable) {
          refused = !isBroomwagonError(error) || !EXPIRED.has(error.code);
          break;
        }
        const baseDelayMs = error.code === 'NO_SERVER_AVAILABLE' ? NO_SERVER_PAUSE_MS : 25;
        const pauseMs = retryDelayMs(tries, error.retryAfterMs ?? 0, { baseDelayMs });
        await delay(pauseMs, undefined, { signal: attempt.signal }).catch(() => undefined);
        // The deadline is for pools without servers; it begins anew after a pause.
        if (error.code === 'POOL_PAUSED') endsAtMs = Date.now() + this.config.noServerDeadlineMs;
      }
    }
    // A grant may still be on its way: the tombstone of this release takes effect first.
    void this.releaser.release(attempt, { acquireId: attempt.acquireId }, 'aborted');
    if (attempt.signal.aborted) return { failed: 'stopped' };
    return { failed: refused ? 'refused' : 'no-server', message };
  }

  private ask(
    { acquireId, claim, worker }: Attempt,
    request: RoutingRequest,
    leftMs: number,
    tries: number,
  ): Promise<LeaseGrant> {
    const waitMs = Math.max(0, Math.min(this.config.acquireWaitMs, leftMs));
    const { requestId, attempt, boundServerId, boundServerEpoch } = claim;
    // Groups of two jobs may have one name, and share a pool.
    const groupId = `${idPart(claim.job)}/${idPart(claim.groupId)}`;
    const bound = { boundServerId, boundServerEpoch };
    const body = { acquireId, requestId, attempt, groupId, ...request, waitMs, ...bound, ...worker };
    const timeoutMs = Math.min(waitMs, REPEAT_AFTER_MS * 2 ** Math.min(tries, 8)) + REPLY_MARGIN_MS;
    return this.controlPlane.call('lb.acquire', body, { timeoutMs });
  }
}
