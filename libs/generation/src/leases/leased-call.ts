import { randomUUID } from 'node:crypto';
import type { Epoch, MoveTarget, WorkerId } from '@broomwagon/contracts';
import { StopSource } from '@broomwagon/engines';

/** One registration of this worker, which expires when the worker registers again. */
export interface WorkerEpoch {
  workerId: WorkerId;
  workerEpoch: Epoch;
}

/**
 * Cause of a stop:
 *
 * - `cut`, `abort`, `move`, `lease-lost`: the call ends with its tokens.
 * - `shutdown`: the call ends with its tokens, and reports another reason.
 * - `timeout`: the sample has generated for the `timeoutMs` of its claim.
 * - `expired`, `fenced`: another worker may own the request, so this worker reports nothing.
 */
export type StopCause = 'cut' | 'abort' | 'move' | 'lease-lost' | 'shutdown' | 'timeout' | 'expired' | 'fenced';

/** Reason of stopped signals. Without a reason, each signal makes an error with a stack, which costs 50 us. */
const STOPPED = new DOMException('The call was stopped', 'AbortError');

/** One call of an engine under one lease, from its acquire to its release. */
export class LeasedCall {
  /** Aborted once the call is stopped. */
  readonly stopSignal = new StopSource();
  private controller: AbortController | undefined;
  private stoppedBy: StopCause | undefined;

  /**
   * @param ids fields of every log line and span about the call
   * @param acquireId random: an id made of the request could get stored answers of an earlier job with the same name
   */
  constructor(
    readonly worker: WorkerEpoch,
    readonly ids: Record<string, string>,
    readonly acquireId: string = randomUUID(),
  ) {}

  /** Stop signal for functions of Node, created at its first use. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.isStopped) this.controller.abort(STOPPED);
    return this.controller.signal;
  }

  get isStopped(): boolean {
    return this.stopSignal.aborted;
  }

  get cause(): StopCause | undefined {
    return this.stoppedBy;
  }

  /** Whether the call is not of this worker any more: any report would be rejected. */
  get isExpired(): boolean {
    return this.stoppedBy === 'expired' || this.stoppedBy === 'fenced';
  }

  /** Stops the call. The first cause stays, except that `expired` and `fenced` replace it. */
  stop(cause: StopCause): void {
    if (this.stoppedBy === undefined || cause === 'expired' || cause === 'fenced') this.stoppedBy = cause;
    this.stopSignal.abort();
    this.controller?.abort(STOPPED);
  }
}

/**
 * Time for which a call continues if a cut would lose its tokens, milliseconds: half of the default of
 * ABORT_DEADLINE_MS.
 */
const RUNS_ON_MS = 30_000;

/** A call of a holder that only routes: its lease may be moved to another server. */
export class MovableCall extends LeasedCall {
  target: MoveTarget | undefined;
  /** False while another server could not continue the call. */
  isMovable = (): boolean => true;
  /** False while the call would lose its tokens if it was cut. */
  isCuttable = (): boolean => true;
  private cutAskedAtMs: number | undefined;
  private planId: string | undefined;
  /** Plans that have moved the lease: a repeated command of such a plan is late. */
  private donePlans: ReadonlySet<string> = new Set();

  /**
   * Stops the call, so that its lease can be moved.
   * @returns false if the call is stopped already, was moved by this plan, or must stay
   */
  move(planId: string, target: MoveTarget): boolean {
    if (this.isStopped || this.donePlans.has(planId) || !this.isMovable()) return false;
    this.planId = planId;
    this.target = target;
    this.stop('move');
    return true;
  }

  /**
   * Ends the call for new weights. A call that would lose its tokens runs on for a time: the command is repeated.
   * @returns whether the call is stopped
   */
  cut(): boolean {
    this.cutAskedAtMs ??= performance.now();
    if (!this.isCuttable() && performance.now() - this.cutAskedAtMs < RUNS_ON_MS) return false;
    this.stop('cut');
    return true;
  }

  /** Returns the next call under the same lease. @param isMoved the lease is on the server of its plan now */
  again(isMoved: boolean): MovableCall {
    const next = new MovableCall(this.worker, this.ids, this.acquireId);
    next.isMovable = this.isMovable;
    next.isCuttable = this.isCuttable;
    next.cutAskedAtMs = this.cutAskedAtMs;
    next.donePlans = isMoved ? new Set([...this.donePlans, this.planId!]) : this.donePlans;
    return next;
  }
}
