import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, type AcquireItem, type ErrorCode, type UnservedReason } from '@broomwagon/contracts';
import { retryDelayMs } from '@broomwagon/messaging';
import { HolderConfig } from '../holder/holder.config';
import { isExpiredEpoch, WorkerSession } from './worker-session';
import { HeldLeases } from './held-leases';
import { type Lease, LeaseCalls } from './lease-calls';
import type { LeasedCall } from './leased-call';
import { LeaseReleaser } from './lease-releaser';
import { unlessAborted } from './unless-aborted';

/** Time for a reply in addition to the `waitMs` of the acquire, milliseconds. */
const REPLY_MARGIN_MS = 2_000;
/**
 * After this time the reply may be lost with its replica: the call is repeated and keeps its place in the queue. The
 * time doubles with each repeat, so that thousands of waiting calls stay cheap.
 */
const REPEAT_AFTER_MS = 5_000;
/** Pause after NO_SERVER_AVAILABLE: a pool without servers must not be asked in a hot loop. */
const NO_SERVER_PAUSE_MS = 250;

/** Refusals of the worker epoch or of this acquireId; another acquire may succeed. */
const EXPIRED = new Set<ErrorCode>(['FENCED', 'WORKER_NOT_FOUND', 'RELEASED', 'ABORTED']);

/** The outcome of an acquire. `refused`: the acquire itself is wrong, and a repeat cannot help. */
export type Acquisition = { lease: Lease } | { failed: 'stopped' | 'no-server' | 'refused'; error?: Error };

/** Fields of an acquire: ids for placement and constraints. */
export type LeaseRequest = Omit<AcquireItem, 'acquireId' | 'waitMs'>;

/**
 * End of a wait for a server; several acquires may share this end. A pause of the pool makes the wait begin again, and
 * so does an answer that other sessions fill the KV memory, until KV_WAIT_DEADLINE_MS.
 */
export interface WaitDeadline {
  endsAtMs: number;
}

interface AcquireOptions {
  endsWhenFull?: boolean;
  endsWithoutServer?: boolean;
  waitsForModel?: boolean;
  deadline?: WaitDeadline;
}

/** Repeats the acquire until it is granted, the call is stopped, or a deadline passes. */
@Injectable()
export class LeaseAcquirer {
  constructor(
    private readonly calls: LeaseCalls,
    private readonly session: WorkerSession,
    private readonly leases: HeldLeases,
    private readonly releaser: LeaseReleaser,
    private readonly config: HolderConfig,
  ) {}

  /**
   * Acquires a lease. Every repeat has the same acquireId, so that a lost reply never costs a second lease. Never
   * throws.
   * @param options.endsWhenFull ends at QUEUE_FULL without a repeat
   * @param options.endsWithoutServer ends at NO_SERVER_AVAILABLE: at once if no registered server fits, and after one
   *   wait if such servers take no leases now
   * @param options.waitsForModel repeats after MODEL_NOT_FOUND: an engine may load the model
   * @param options.deadline default: NO_SERVER_DEADLINE_MS from now
   */
  async acquire(
    call: LeasedCall,
    request: LeaseRequest,
    {
      endsWhenFull = false,
      endsWithoutServer = false,
      waitsForModel = false,
      deadline = this.deadline(),
    }: AcquireOptions = {},
  ): Promise<Acquisition> {
    let asked = request;
    const startedAtMs = Date.now();
    this.leases.asking(call);
    let last: Error | undefined;
    let refused = false;
    for (let tries = 0; !call.isStopped; tries++) {
      const leftMs = deadline.endsAtMs - Date.now();
      if (tries > 0 && leftMs <= 0) break;
      try {
        const waitMs = endsWithoutServer && tries === 0 ? 0 : Math.min(this.config.acquireWaitMs, leftMs);
        const lease = await unlessAborted(call.stopSignal, this.ask(call, asked, Math.max(0, waitMs), tries));
        if (lease === undefined) break;
        this.leases.granted(call, lease.leaseId);
        return { lease };
      } catch (error) {
        last = error as Error;
        if (isExpiredEpoch(error)) this.session.fence(call.worker);
        // A session that waits for KV memory has servers: its wait has a deadline of its own.
        if (getReason(error) === 'kv-full') {
          deadline.endsAtMs = Math.min(this.deadline().endsAtMs, startedAtMs + this.config.kvWaitDeadlineMs);
        }
        // A single acquire waits for a shorter time than all its repeats together.
        if (isBroomwagonError(error, 'WAIT_TIMEOUT') || isBroomwagonError(error, 'TIMEOUT')) continue;
        // A load-balancer of the previous release does not know the field `avoidServers`.
        if (asked.avoidServers !== undefined && isBroomwagonError(error, 'VALIDATION_FAILED')) {
          asked = { ...request, avoidServers: undefined };
          continue;
        }
        const isFinal =
          (endsWhenFull && isBroomwagonError(error, 'QUEUE_FULL')) || (endsWithoutServer && noneFits(error));
        const isAwaited = waitsForModel && isBroomwagonError(error, 'MODEL_NOT_FOUND');
        if (!isBroomwagonError(error) || !(error.retryable || isAwaited) || isFinal) {
          refused = !isBroomwagonError(error) || !EXPIRED.has(error.code);
          break;
        }
        if (endsWithoutServer && tries > 0 && error.code === 'NO_SERVER_AVAILABLE') break;
        const baseDelayMs = error.code === 'NO_SERVER_AVAILABLE' || isAwaited ? NO_SERVER_PAUSE_MS : 25;
        const pauseMs = retryDelayMs(tries, error.retryAfterMs ?? 0, { baseDelayMs });
        await delay(pauseMs, undefined, { signal: call.signal }).catch(() => undefined);
        // The deadline is for pools without servers; it begins again after a pause.
        if (error.code === 'POOL_PAUSED') Object.assign(deadline, this.deadline());
      }
    }
    // A grant may still be on its way: after this release, Redis refuses the acquire.
    void this.releaser.release(call, { acquireId: call.acquireId }, 'aborted');
    if (call.isStopped) return { failed: 'stopped' };
    return { failed: refused ? 'refused' : 'no-server', error: last };
  }

  private deadline(): WaitDeadline {
    return { endsAtMs: Date.now() + this.config.noServerDeadlineMs };
  }

  private ask({ acquireId, worker }: LeasedCall, request: LeaseRequest, waitMs: number, tries: number): Promise<Lease> {
    const timeoutMs = Math.min(waitMs, REPEAT_AFTER_MS * 2 ** Math.min(tries, 8)) + REPLY_MARGIN_MS;
    return this.calls.acquire(worker, { acquireId, ...request }, { waitMs, timeoutMs, isRepeat: tries > 0 });
  }
}

/** Whether only a registration can let the acquire be granted. */
function noneFits(error: unknown): boolean {
  return isBroomwagonError(error, 'NO_SERVER_AVAILABLE') && getReason(error) === 'none-fits';
}

/** The obstacle that an acquire has met, if the answer names it. */
function getReason(error: unknown): UnservedReason | undefined {
  if (!isBroomwagonError(error)) return undefined;
  return (error.details as { reason?: UnservedReason } | undefined)?.reason;
}
